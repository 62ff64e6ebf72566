//! Who waits for which counter, and which limits are known to be spent. Pure.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use domain::rate_limit::RateLimit;
use store::rate_limit::{Limiter, Reserved};

/// The most counters that are remembered as spent. A forgotten one is asked again, which is right
/// too, and costs a statement.
const REMEMBERED_MAX: usize = 10_000;
/// How often those whose window is over are looked for, at most.
const FORGET_EVERY: Duration = Duration::from_secs(1);

/// Which counter: what is limited, and whom it counts.
pub(super) type Key = (Limiter, String);

/// All counters that somebody waits for or that are known to be spent.
#[derive(Debug)]
pub(super) struct Counters<W> {
    by_key: HashMap<Key, Counter<W>>,
    waiting: usize,
    waiting_max: usize,
    forgotten_at: Option<Instant>,
}

#[derive(Debug)]
struct Counter<W> {
    waiting: VecDeque<(RateLimit, W)>,
    /// A reservation of it is under way.
    reserving: bool,
    known: Option<Known>,
}

/// What the database said of a counter: it will not say less before the window's end.
#[derive(Debug, Clone, Copy)]
struct Known {
    used: u32,
    window: Duration,
    until: Instant,
    /// By the limit that was asked for.
    is_spent: bool,
}

/// What became of a request that came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entered {
    /// The limit is known to be spent.
    Denied { until: Instant },
    /// Too many wait.
    Full,
    /// A reservation is under way, and another follows it.
    Waiting,
    /// It waits, and whoever brought it has to begin.
    First,
}

/// The next reservation of a counter.
#[derive(Debug)]
pub(super) struct Turn<W> {
    pub(super) limit: RateLimit,
    /// Whom it is for, in the order in which they came. Nobody if all were denied.
    pub(super) waiting: Vec<W>,
    /// Whose limit has turned out to be spent while they waited.
    pub(super) denied: Vec<(W, Instant)>,
}

impl<W> Counter<W> {
    /// Until when the limit is known to be spent.
    fn spent_until(&self, limit: RateLimit, now: Instant) -> Option<Instant> {
        let known = self.known?;
        let is_spent =
            known.used >= limit.units() && known.window == limit.window() && now < known.until;
        is_spent.then_some(known.until)
    }
}

impl<W> Counters<W> {
    pub(super) fn new(waiting_max: usize) -> Self {
        Self { by_key: HashMap::new(), waiting: 0, waiting_max, forgotten_at: None }
    }

    /// A request wants one unit.
    pub(super) fn enter(
        &mut self,
        key: &Key,
        limit: RateLimit,
        waiting: W,
        now: Instant,
    ) -> Entered {
        if let Some(until) = self.by_key.get(key).and_then(|c| c.spent_until(limit, now)) {
            return Entered::Denied { until };
        }
        if self.waiting >= self.waiting_max {
            return Entered::Full;
        }
        let fresh = || Counter { waiting: VecDeque::new(), reserving: false, known: None };
        let counter = self.by_key.entry(key.clone()).or_insert_with(fresh);
        counter.waiting.push_back((limit, waiting));
        self.waiting += 1;
        if std::mem::replace(&mut counter.reserving, true) {
            Entered::Waiting
        } else {
            Entered::First
        }
    }

    /// The next reservation of a counter, or none: then whoever comes next is the first again.
    pub(super) fn next(&mut self, key: &Key, now: Instant) -> Option<Turn<W>> {
        let counter = self.by_key.get_mut(key)?;
        let Some((limit, _)) = counter.waiting.front() else {
            counter.reserving = false;
            self.keep_or_forget(key, now);
            return None;
        };
        let limit = *limit;
        let mut turn = Turn { limit, waiting: Vec::new(), denied: Vec::new() };
        // One reservation has one limit: whoever came after the limit was changed is in the next one.
        while counter.waiting.front().is_some_and(|(other, _)| *other == limit) {
            let Some((_, waiting)) = counter.waiting.pop_front() else { break };
            self.waiting -= 1;
            match counter.spent_until(limit, now) {
                Some(until) => turn.denied.push((waiting, until)),
                None => turn.waiting.push(waiting),
            }
        }
        Some(turn)
    }

    /// The database has answered to a question of this instant.
    pub(super) fn learn(&mut self, key: &Key, reserved: &Reserved, asked_at: Instant) {
        let Some(counter) = self.by_key.get_mut(key) else { return };
        let until = asked_at + reserved.window_ends_in;
        let window = reserved.limit.window();
        let is_spent = reserved.used >= reserved.limit.units();
        counter.known = Some(Known { used: reserved.used, window, until, is_spent });
    }

    /// A counter that nobody waits for is kept while it is of use: its limit is spent, as far as the
    /// last answer tells, and its window goes on.
    fn keep_or_forget(&mut self, key: &Key, now: Instant) {
        let is_of_use =
            |counter: &Counter<W>| counter.known.is_some_and(|k| k.is_spent && now < k.until);
        if self.by_key.len() > REMEMBERED_MAX
            && self.forgotten_at.is_none_or(|at| now.duration_since(at) >= FORGET_EVERY)
        {
            self.forgotten_at = Some(now);
            self.by_key.retain(|_, counter| counter.reserving || is_of_use(counter));
        }
        let is_too_many = self.by_key.len() > REMEMBERED_MAX;
        if is_too_many || self.by_key.get(key).is_some_and(|counter| !is_of_use(counter)) {
            self.by_key.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(units: u32) -> RateLimit {
        RateLimit::new(units, Duration::from_secs(60)).unwrap()
    }

    fn key(subject: &str) -> Key {
        (Limiter::Source, subject.to_owned())
    }

    fn reserved(used: u32, limit: RateLimit, seconds: u64) -> Reserved {
        Reserved { granted: 0, used, limit, window_ends_in: Duration::from_secs(seconds) }
    }

    #[test]
    fn who_comes_during_a_reservation_shares_the_next_in_order() {
        let (now, a) = (Instant::now(), key("a"));
        let mut counters = Counters::new(10);
        assert_eq!(counters.enter(&a, limit(5), 1, now), Entered::First);
        assert_eq!(counters.next(&a, now).unwrap().waiting, [1]);
        for n in 2..5 {
            assert_eq!(counters.enter(&a, limit(5), n, now), Entered::Waiting);
        }
        assert_eq!(counters.enter(&key("b"), limit(5), 9, now), Entered::First, "another counter");
        assert_eq!(counters.next(&a, now).unwrap().waiting, [2, 3, 4]);
        assert!(counters.next(&a, now).is_none());
        assert_eq!(counters.enter(&a, limit(5), 5, now), Entered::First);
    }

    #[test]
    fn a_limit_that_is_known_to_be_spent_denies_until_its_window_ends_and_no_longer() {
        let (now, a) = (Instant::now(), key("a"));
        let mut counters = Counters::new(10);
        counters.enter(&a, limit(5), 1, now);
        counters.next(&a, now).unwrap();
        counters.enter(&a, limit(5), 2, now);
        counters.learn(&a, &reserved(5, limit(5), 30), now);
        let until = now + Duration::from_secs(30);
        let turn = counters.next(&a, now).unwrap();
        assert!(turn.waiting.is_empty());
        assert_eq!(turn.denied, [(2, until)], "it waited, and need not ask any more");
        assert!(counters.next(&a, now).is_none());
        let later = now + Duration::from_secs(29);
        assert_eq!(counters.enter(&a, limit(5), 3, later), Entered::Denied { until });
        assert_eq!(counters.enter(&a, limit(5), 3, until), Entered::First);
    }

    #[test]
    fn a_limit_that_was_raised_is_asked_for_again() {
        let (now, a) = (Instant::now(), key("a"));
        let mut counters = Counters::new(10);
        counters.enter(&a, limit(5), 1, now);
        counters.next(&a, now).unwrap();
        counters.learn(&a, &reserved(7, limit(5), 30), now);
        assert!(counters.next(&a, now).is_none());
        let until = now + Duration::from_secs(30);
        assert_eq!(counters.enter(&a, limit(7), 2, now), Entered::Denied { until });
        assert_eq!(counters.enter(&a, limit(8), 2, now), Entered::First);
        let other_window = RateLimit::new(5, Duration::from_secs(10)).unwrap();
        assert_eq!(counters.enter(&a, other_window, 3, now), Entered::Waiting);
        assert_eq!(counters.next(&a, now).unwrap().waiting, [2], "one limit a reservation");
        assert_eq!(counters.next(&a, now).unwrap().waiting, [3]);
    }

    #[test]
    fn what_waits_is_bounded_over_all_counters() {
        let now = Instant::now();
        let mut counters = Counters::new(2);
        counters.enter(&key("a"), limit(5), 1, now);
        counters.enter(&key("b"), limit(5), 2, now);
        assert_eq!(counters.enter(&key("a"), limit(5), 3, now), Entered::Full);
        counters.next(&key("b"), now).unwrap();
        assert_eq!(counters.enter(&key("a"), limit(5), 3, now), Entered::Waiting);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_what_is_over_is_forgotten() {
        let now = Instant::now();
        let mut counters = Counters::new(2);
        let mut spend = |subject: String, now: Instant, seconds: u64| {
            let key = (Limiter::Source, subject);
            counters.enter(&key, limit(1), (), now);
            counters.next(&key, now);
            counters.learn(&key, &reserved(1, limit(1), seconds), now);
            counters.next(&key, now);
            counters.by_key.len()
        };
        for n in 0..REMEMBERED_MAX {
            assert_eq!(spend(format!("{n}"), now, 30), n + 1);
        }
        assert_eq!(spend("one more".to_owned(), now, 30), REMEMBERED_MAX);
        assert_eq!(spend("over at once".to_owned(), now, 0), REMEMBERED_MAX);
        let later = now + Duration::from_secs(31);
        assert_eq!(spend("when all are over".to_owned(), later, 30), 1);
    }
}
