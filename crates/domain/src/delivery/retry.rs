//! When a failed delivery is tried again.
//!
//! A schedule holds waits, not instants: the database's clock turns a wait into a due time. The
//! random draw of the jitter and the current time are arguments.

use std::time::Duration;

use time::{
    OffsetDateTime, PrimitiveDateTime, format_description::StaticFormatDescription,
    macros::format_description, parsing::Parsed,
};

/// The most delays in a schedule: 30.
pub const DELAYS_MAX: usize = 30;

/// The longest single delay: 7 days.
pub const DELAY_MAX: Duration = Duration::from_hours(7 * 24);

/// The longest wait that a receiver's `Retry-After` is granted: 24 hours.
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// The default floor of the wait after an answer that means overload: 60 s.
///
/// Standard Webhooks, "Delivery success and failure": throttle after 429, 502 and 504.
pub const OVERLOAD_FLOOR_DEFAULT: Duration = Duration::from_mins(1);

/// The waits between the attempts of one cycle: 1 to 30 delays of 0 to 7 days each.
///
/// The first attempt is made at once. After the n-th failed attempt, delay n is waited, counted
/// from 1. So a cycle has one attempt more than there are delays.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetrySchedule {
    /// Not empty, at most [`DELAYS_MAX`].
    delays: Vec<Duration>,
}

/// Why a list of delays is not a retry schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RetryScheduleError {
    /// The list is empty.
    #[error("a retry schedule has 1 to {DELAYS_MAX} delays, this one none")]
    Empty,
    /// The list is longer than [`DELAYS_MAX`].
    #[error("a retry schedule has 1 to {DELAYS_MAX} delays, this one {count}")]
    TooMany {
        /// How many delays were given.
        count: usize,
    },
    /// A delay is longer than [`DELAY_MAX`].
    #[error("a retry delay is at most {} s long, delay {position} is {} s", DELAY_MAX.as_secs(), delay.as_secs_f64())]
    DelayTooLong {
        /// Which delay, counted from 1.
        position: usize,
        /// The delay that was given.
        delay: Duration,
    },
}

impl Default for RetrySchedule {
    /// The example schedule of Standard Webhooks, "Deliverability and reliability": after 5 s,
    /// 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, ten attempts in a little over three days.
    fn default() -> Self {
        let hours = [2, 5, 10, 14, 20, 24].map(Duration::from_hours);
        let mut delays =
            vec![Duration::from_secs(5), Duration::from_mins(5), Duration::from_mins(30)];
        delays.extend(hours);
        Self { delays }
    }
}

impl RetrySchedule {
    /// Takes the waits in order.
    ///
    /// # Errors
    /// [`RetryScheduleError`], which names the limit.
    pub fn new(delays: Vec<Duration>) -> Result<Self, RetryScheduleError> {
        if delays.is_empty() {
            return Err(RetryScheduleError::Empty);
        }
        if delays.len() > DELAYS_MAX {
            return Err(RetryScheduleError::TooMany { count: delays.len() });
        }
        for (delay, position) in delays.iter().zip(1..) {
            if *delay > DELAY_MAX {
                return Err(RetryScheduleError::DelayTooLong { position, delay: *delay });
            }
        }
        Ok(Self { delays })
    }

    /// The waits in order, 1 to [`DELAYS_MAX`] of them.
    #[must_use]
    pub fn delays(&self) -> &[Duration] {
        &self.delays
    }

    /// How many attempts a cycle has: 2 to 31.
    #[must_use]
    pub fn attempts_max(&self) -> u32 {
        // At most 31; the fallback of a conversion that cannot fail.
        u32::try_from(self.delays.len()).map_or(u32::MAX, |delays| delays + 1)
    }

    /// The wait before the next attempt when `failed_attempts` of this cycle have failed.
    ///
    /// Zero before the first attempt. `None` when the cycle is spent.
    #[must_use]
    pub fn delay_after(&self, failed_attempts: u32) -> Option<Duration> {
        match failed_attempts {
            0 => Some(Duration::ZERO),
            n => self.delays.get(position(n)).copied(),
        }
    }

    /// How long a delivery is parked whose claim lapsed for the `lapses`-th time in a row.
    ///
    /// Lapses climb the same delays as attempts, and stay on the last: a lapse does not spend the
    /// cycle. The store computes the same in SQL as
    /// `delays[LEAST(lapses + cycle_attempts, cardinality(delays))]`. With neither lapses nor
    /// attempts, where that is NULL, this is the first delay.
    #[must_use]
    pub fn lapse_delay(&self, lapses: u32, cycle_attempts: u32) -> Duration {
        let index = position(lapses.saturating_add(cycle_attempts));
        let clamped = self.delays.get(index).or(self.delays.last());
        // A schedule is never empty.
        clamped.copied().unwrap_or_default()
    }
}

/// The index of the n-th element, counted from 1. Zero is taken as 1.
fn position(n: u32) -> usize {
    usize::try_from(n.saturating_sub(1)).unwrap_or(usize::MAX)
}

/// Spreads a delay by up to 20 % to either side, so that what failed together is not retried
/// together (Standard Webhooks, "Deliverability and reliability").
///
/// `draw` is uniform in `[0, 1)`: 0 gives 80 %, 0.5 the delay itself, close to 1 gives 120 %. What
/// lies outside is clamped, and NaN counts as 0.5. The result is in whole milliseconds, rounded
/// down.
#[must_use]
pub fn jittered(delay: Duration, draw: f64) -> Duration {
    let draw = if draw.is_nan() { 0.5 } else { draw.clamp(0.0, 1.0) };
    let seconds = delay.as_secs_f64() * (0.8 + 0.4 * draw);
    let spread = Duration::try_from_secs_f64(seconds).unwrap_or(delay);
    Duration::new(spread.as_secs(), spread.subsec_millis() * 1_000_000)
}

/// The wait that the `Retry-After` lines of one response ask for.
///
/// Only a single line counts. The field is no list (RFC 9110 section 10.2.3), so several lines
/// are invalid (section 5.3), and obeying one of them would be a guess.
pub fn pick_retry_after<'a>(
    lines: impl IntoIterator<Item = &'a [u8]>,
    now: OffsetDateTime,
) -> Option<Duration> {
    let mut lines = lines.into_iter();
    match (lines.next(), lines.next()) {
        (Some(only), None) => parse_retry_after(only, now),
        _ => None,
    }
}

/// The wait that one `Retry-After` line asks for, at most [`RETRY_AFTER_MAX`].
///
/// The value is a number of seconds in digits, or an HTTP-date in any of its three forms (RFC 9110
/// sections 10.2.3 and 5.6.7). Spaces and tabs around it are ignored. A date that is past asks for
/// no wait. The day of the week is not compared with the date. `None` means that the value is
/// invalid and is to be ignored.
#[must_use]
pub fn parse_retry_after(value: &[u8], now: OffsetDateTime) -> Option<Duration> {
    let text = str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    if text.is_empty() {
        return None;
    }
    let wait = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Only digits, so what does not parse is too large to hold.
        text.parse().map_or(Duration::MAX, Duration::from_secs)
    } else {
        Duration::try_from(parse_http_date(text, now)? - now).unwrap_or_default()
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
const IMF_FIXDATE: StaticFormatDescription = format_description!(
    version = 2,
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);

/// `Sunday, 06-Nov-94 08:49:37 GMT`
const RFC_850: StaticFormatDescription = format_description!(
    version = 2,
    "[weekday], [day]-[month repr:short]-[year repr:last_two] [hour]:[minute]:[second] GMT"
);

/// `Sun Nov  6 08:49:37 1994`
const ASCTIME: StaticFormatDescription = format_description!(
    version = 2,
    "[weekday repr:short] [month repr:short] [day padding:space] [hour]:[minute]:[second] [year]"
);

fn parse_http_date(text: &str, now: OffsetDateTime) -> Option<OffsetDateTime> {
    let date = PrimitiveDateTime::parse(text, IMF_FIXDATE)
        .or_else(|_| PrimitiveDateTime::parse(text, ASCTIME))
        .ok()
        .or_else(|| parse_rfc_850(text, now))?;
    Some(date.assume_utc())
}

/// The two-digit year is the latest one that is not more than 50 years ahead (RFC 9110 section
/// 5.6.7), compared by calendar year.
fn parse_rfc_850(text: &str, now: OffsetDateTime) -> Option<PrimitiveDateTime> {
    let mut parsed = Parsed::new();
    if !parsed.parse_items(text.as_bytes(), RFC_850).ok()?.is_empty() {
        return None;
    }
    let latest_year = now.year() + 50;
    let years_before = (latest_year - i32::from(parsed.year_last_two()?)).rem_euclid(100);
    parsed.set_year(latest_year - years_before)?;
    parsed.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-07-31 12:00:00 UTC);

    fn seconds(value: &str) -> Option<u64> {
        parse_retry_after(value.as_bytes(), NOW).map(|wait| wait.as_secs())
    }

    #[test]
    fn the_default_is_the_schedule_of_standard_webhooks() {
        let schedule = RetrySchedule::default();
        let starts: Vec<u64> = schedule
            .delays()
            .iter()
            .scan(0, |start, delay| {
                *start += delay.as_secs();
                Some(*start)
            })
            .collect();
        // The column "Time since start" of the specification, without its first row.
        let clock = |hours: u64, minutes: u64| hours * 3600 + minutes * 60 + 5;
        assert_eq!(
            starts,
            [
                clock(0, 0),
                clock(0, 5),
                clock(0, 35),
                clock(2, 35),
                clock(7, 35),
                clock(17, 35),
                clock(31, 35),
                clock(51, 35),
                clock(75, 35)
            ]
        );
        assert_eq!(schedule.attempts_max(), 10);
        assert_eq!(RetrySchedule::new(schedule.delays().to_vec()), Ok(schedule));
    }

    #[test]
    fn a_schedule_outside_its_limits_is_refused() {
        let second = Duration::from_secs(1);
        assert_eq!(RetrySchedule::new(vec![]), Err(RetryScheduleError::Empty));
        assert!(RetrySchedule::new(vec![second; 30]).is_ok());
        assert_eq!(
            RetrySchedule::new(vec![second; 31]),
            Err(RetryScheduleError::TooMany { count: 31 })
        );
        assert!(RetrySchedule::new(vec![Duration::ZERO, DELAY_MAX]).is_ok());
        let delay = DELAY_MAX + Duration::from_millis(1);
        let refused = RetrySchedule::new(vec![second, delay]).unwrap_err();
        assert_eq!(refused, RetryScheduleError::DelayTooLong { position: 2, delay });
        assert_eq!(
            refused.to_string(),
            "a retry delay is at most 604800 s long, delay 2 is 604800.001 s"
        );
    }

    #[test]
    fn each_failed_attempt_has_its_delay_until_the_cycle_is_spent() {
        let schedule = RetrySchedule::new([1, 10, 100].map(Duration::from_secs).to_vec()).unwrap();
        let after = |failed| schedule.delay_after(failed).map(|delay| delay.as_secs());
        assert_eq!([0, 1, 2, 3].map(after), [Some(0), Some(1), Some(10), Some(100)]);
        assert_eq!([4, 5, u32::MAX].map(after), [None; 3]);
        assert_eq!(schedule.attempts_max(), 4);
    }

    #[test]
    fn lapses_climb_the_schedule_and_stay_on_its_last_delay() {
        let schedule = RetrySchedule::new([1, 10, 100].map(Duration::from_secs).to_vec()).unwrap();
        let parked = |(lapses, attempts)| schedule.lapse_delay(lapses, attempts).as_secs();
        assert_eq!([(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)].map(parked), [1, 1, 10, 100, 100]);
        assert_eq!([(2, 1), (2, 9), (u32::MAX, u32::MAX)].map(parked), [100, 100, 100]);
    }

    #[test]
    fn jitter_spreads_by_a_fifth_to_either_side() {
        let minute = Duration::from_mins(1);
        for (draw, millis) in [
            (0.0, 48_000),
            (0.25, 54_000),
            (0.5, 60_000),
            (1.0, 72_000),
            (-3.0, 48_000),
            (7.0, 72_000),
            (f64::NAN, 60_000),
            (f64::NEG_INFINITY, 48_000),
            (f64::INFINITY, 72_000),
        ] {
            assert_eq!(jittered(minute, draw), Duration::from_millis(millis), "{draw}");
        }
        assert_eq!(jittered(Duration::ZERO, 0.9), Duration::ZERO);
        assert!(jittered(Duration::MAX, 0.9) <= Duration::MAX);
    }

    /// Case C022.
    #[test]
    fn retry_after_is_seconds_or_a_date() {
        for (value, expected) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 10 ", Some(10)),
            ("\t10\t", Some(10)),
            ("007", Some(7)),
            ("86400", Some(86_400)),
            ("86401", Some(86_400)),
            ("18446744073709551616", Some(86_400)),
            ("Fri, 31 Jul 2026 12:02:00 GMT", Some(120)),
            (" Fri, 31 Jul 2026 12:02:00 GMT ", Some(120)),
            ("Friday, 31-Jul-26 12:02:00 GMT", Some(120)),
            ("Fri Jul 31 12:02:00 2026", Some(120)),
            ("Sat Aug  1 00:00:00 2026", Some(43_200)),
            ("Thu, 01 Jan 2099 00:00:00 GMT", Some(86_400)),
            ("Fri, 31 Jul 2026 12:00:00 GMT", Some(0)),
            ("Fri, 31 Jul 2026 11:59:59 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(0)),
            ("Sun Nov  6 08:49:37 1994", Some(0)),
            ("soon", None),
            ("", None),
            ("  ", None),
            ("1.5", None),
            ("120, 5", None),
            ("+10", None),
            ("-10", None),
            ("1e3", None),
            ("0x10", None),
            ("10 s", None),
            ("\u{661}\u{662}", None),
            ("\u{a0}10", None),
            ("Fri, 31 Jul 2026 12:02:00", None),
            ("Fri, 31 Jul 2026 12:02:00 UTC", None),
            ("Fri, 31 Jul 2026 12:02:00 +0000", None),
            ("Fri, 31 Jul 2026 25:02:00 GMT", None),
            ("Fri, 31 Feb 2026 12:02:00 GMT", None),
            ("Fri, 1 Jul 2026 12:02:00 GMT", None),
            ("fri, 31 jul 2026 12:02:00 gmt", None),
            ("Fri, 31-Jul-26 12:02:00 GMT", None),
            ("Friday, 31-Jul-26 12:02:00 GMT x", None),
            ("2026-07-31T12:02:00Z", None),
        ] {
            assert_eq!(seconds(value), expected, "{value:?}");
        }
        assert_eq!(seconds(&"9".repeat(8192)), Some(86_400));
        assert_eq!(parse_retry_after(&[0xFF, b'1'], NOW), None);
    }

    #[test]
    fn a_date_counts_from_the_fraction_of_the_current_second() {
        let now = NOW + time::Duration::milliseconds(250);
        assert_eq!(
            parse_retry_after(b"Fri, 31 Jul 2026 12:00:01 GMT", now),
            Some(Duration::from_millis(750))
        );
    }

    #[test]
    fn a_two_digit_year_is_at_most_fifty_years_ahead() {
        let year = |text: &str, now| parse_rfc_850(text, now).map(PrimitiveDateTime::year);
        assert_eq!(year("Friday, 01-Jan-26 00:00:00 GMT", NOW), Some(2026));
        assert_eq!(year("Friday, 01-Jan-76 00:00:00 GMT", NOW), Some(2076));
        assert_eq!(year("Friday, 01-Jan-77 00:00:00 GMT", NOW), Some(1977));
        assert_eq!(year("Friday, 01-Jan-99 00:00:00 GMT", NOW), Some(1999));
        let end_of_century = datetime!(2099-12-31 23:59:00 UTC);
        assert_eq!(year("Friday, 01-Jan-00 00:01:00 GMT", end_of_century), Some(2100));
        assert_eq!(
            parse_retry_after(b"Friday, 01-Jan-00 00:01:00 GMT", end_of_century),
            Some(Duration::from_mins(2))
        );
        // 2000 has this day, 1900 and 2100 have not.
        assert_eq!(year("Tuesday, 29-Feb-00 00:00:00 GMT", NOW), Some(2000));
        assert_eq!(year("Tuesday, 29-Feb-00 00:00:00 GMT", end_of_century), None);
    }

    #[test]
    fn only_a_single_line_counts() {
        let pick = |lines: &[&'static [u8]]| pick_retry_after(lines.iter().copied(), NOW);
        assert_eq!(pick(&[b"120"]), Some(Duration::from_mins(2)));
        assert_eq!(pick(&[]), None);
        assert_eq!(pick(&[b"120", b"120"]), None);
        assert_eq!(pick(&[b"120", b"soon"]), None);
    }

    proptest! {
        #[test]
        fn a_jittered_delay_stays_within_a_fifth(millis in 0..=604_800_000_u64, draw in any::<f64>()) {
            let delay = Duration::from_millis(millis);
            let spread = jittered(delay, draw);
            let slack = Duration::from_millis(1);
            prop_assert!(spread + slack >= delay * 4 / 5, "{spread:?}");
            prop_assert!(spread <= delay * 6 / 5 + slack, "{spread:?}");
            prop_assert_eq!(spread.subsec_nanos() % 1_000_000, 0);
        }

        #[test]
        fn a_schedule_has_as_many_waits_as_it_says(
            millis in proptest::collection::vec(0..=604_800_000_u64, 1..=30),
            lapses in any::<u32>(),
            attempts in any::<u32>(),
        ) {
            let delays: Vec<_> = millis.into_iter().map(Duration::from_millis).collect();
            let schedule = RetrySchedule::new(delays.clone()).unwrap();
            let waits: Vec<_> = (1..).map_while(|failed| schedule.delay_after(failed)).collect();
            prop_assert_eq!(waits.len() + 1, schedule.attempts_max() as usize);
            prop_assert_eq!(waits, delays.clone());
            prop_assert!(delays.contains(&schedule.lapse_delay(lapses, attempts)));
        }

        #[test]
        fn any_retry_after_is_answered_within_the_cap(value in proptest::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(parse_retry_after(&value, NOW).is_none_or(|wait| wait <= RETRY_AFTER_MAX));
        }

        #[test]
        fn every_form_of_a_date_means_the_same(offset in 0..86_400_i64) {
            let at = NOW + time::Duration::seconds(offset);
            let rfc_850 = at.format(RFC_850).unwrap();
            for text in [at.format(IMF_FIXDATE).unwrap(), rfc_850, at.format(ASCTIME).unwrap()] {
                prop_assert_eq!(seconds(&text), u64::try_from(offset).ok(), "{}", text);
            }
        }
    }
}
