//! How long an endpoint has been failing, and when that disables it.

use std::time::Duration;

use time::OffsetDateTime;

use super::Tally;

/// How long an endpoint fails, without a success between, until it is disabled.
pub const FAILING_MAX: Duration = DAY.saturating_mul(5);
/// Behind its first failure, the last one has to lie so far: on the fifth day.
pub const FAILING_LAST: Duration = DAY.saturating_mul(4);
/// Each part of that time needs a failure.
pub const DAY: Duration = Duration::from_hours(24);

/// A run of failures with no success between, and at least one on each day counted from the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Failing {
    /// When the first of them was recorded.
    pub since: OffsetDateTime,
    /// When the last of them was recorded.
    pub last: OffsetDateTime,
}

impl Failing {
    /// What results make of a run, or of none.
    ///
    /// A success ends it. A failure after a day without one begins another.
    #[must_use]
    pub fn after(run: Option<Self>, tally: Tally, now: OffsetDateTime) -> Option<Self> {
        match (tally.succeeded, tally.failed) {
            (1.., _) => None,
            (0, 0) => run,
            (0, 1..) => {
                let going_on = run.filter(|run| run.goes_on(now));
                Some(Self { since: going_on.map_or(now, |run| run.since), last: now })
            }
        }
    }

    /// Whether a failure now would belong to it: no day has passed without one.
    #[must_use]
    pub fn goes_on(&self, now: OffsetDateTime) -> bool {
        self.day(now) <= self.day(self.last) + 1
    }

    /// When it disables the endpoint, if it goes on like this.
    #[must_use]
    pub fn disables_at(&self) -> OffsetDateTime {
        self.since + FAILING_MAX
    }

    /// Whether it disables the endpoint now: its time is over, and each day of it had a failure.
    #[must_use]
    pub fn is_over(&self, now: OffsetDateTime) -> bool {
        now >= self.disables_at() && self.last >= self.since + FAILING_LAST
    }

    /// How many whole days after its beginning.
    fn day(&self, at: OffsetDateTime) -> i64 {
        (at - self.since).whole_days()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::Duration as Span;
    use time::macros::datetime;

    use super::*;

    const START: OffsetDateTime = datetime!(2026-03-27 12:00 UTC);
    const FAILED: Tally = Tally { succeeded: 0, failed: 1 };

    fn hours(hours: i64) -> OffsetDateTime {
        START + Span::hours(hours)
    }

    /// A run of failures at these hours.
    fn run(at: &[i64]) -> Failing {
        let run = at.iter().fold(None, |run, hour| Failing::after(run, FAILED, hours(*hour)));
        run.unwrap()
    }

    #[test]
    fn a_failure_a_day_for_five_days_disables() {
        let daily = run(&[0, 24, 49, 73, 97]);
        assert_eq!(daily, Failing { since: START, last: hours(97) });
        assert!(!daily.is_over(hours(119)));
        assert!(daily.is_over(hours(120)));
        assert_eq!(daily.disables_at(), hours(120));
        // Whoever looks late finds the same.
        assert!(daily.is_over(hours(400)));
    }

    #[test]
    fn the_last_day_needs_its_failure_too() {
        let short = run(&[0, 24, 49, 73, 95]);
        assert!(!short.is_over(hours(120)));
        let whole = Failing::after(Some(short), FAILED, hours(119)).unwrap();
        assert!(!whole.is_over(hours(119)) && whole.is_over(hours(120)));
        let too_late = Failing::after(Some(short), FAILED, hours(121)).unwrap();
        assert_eq!(too_late.since, hours(121));
    }

    #[test]
    fn a_day_without_a_failure_begins_anew() {
        assert_eq!(run(&[0, 47]).since, START);
        assert_eq!(run(&[0, 48]), Failing { since: hours(48), last: hours(48) });
        assert_eq!(run(&[0, 20, 26, 71]).since, START);
        assert_eq!(run(&[0, 20, 26, 72]).since, hours(72));
    }

    #[test]
    fn only_a_success_ends_it_and_what_tells_nothing_changes_nothing() {
        let some = Some(run(&[0, 24]));
        assert_eq!(Failing::after(some, Tally::default(), hours(40)), some);
        assert_eq!(Failing::after(None, Tally::default(), hours(40)), None);
        let mixed = Tally { succeeded: 1, failed: 7 };
        assert_eq!(Failing::after(some, mixed, hours(40)), None);
    }

    proptest! {
        /// Against the sentence itself: five days, no success, and each of these days with a failure.
        #[test]
        fn it_is_over_exactly_when_each_of_five_days_had_a_failure(
            steps in proptest::collection::vec((1_i64..40, prop::bool::weighted(0.05)), 1..60),
        ) {
            let (mut now, mut state, mut failures) = (0, None, Vec::<i64>::new());
            for (step, succeeds) in steps {
                now += step;
                let tally = if succeeds { Tally { succeeded: 1, failed: 0 } } else { FAILED };
                state = Failing::after(state, tally, hours(now));
                if succeeds {
                    failures.clear();
                    continue;
                }
                failures.push(now);
                // A day, counted from the first failure, that had none: what was before is forgotten.
                let first = failures[0];
                let has = |day: i64| failures.iter().any(|at| (at - first) / 24 == day);
                if !(0..(now - first) / 24).all(has) {
                    failures = vec![now];
                }
                let first = failures[0];
                let has = |day: i64| failures.iter().any(|at| (at - first) / 24 == day);
                let over = now - first >= 120 && (0..5).all(has);
                prop_assert_eq!(state.unwrap().is_over(hours(now)), over);
            }
        }
    }
}
