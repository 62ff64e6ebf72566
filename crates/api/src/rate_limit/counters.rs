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

/// The most counters that one statement asks.
const TURNS_MAX: usize = 100;
/// How many statements ask at once. More would only make each of them smaller: what costs is the
/// statement, not its rows.
const STATEMENTS_MAX: usize = 1;

/// All counters that somebody waits for or that are known to be spent.
#[derive(Debug)]
pub(super) struct Counters<W> {
    by_key: HashMap<Key, Counter<W>>,
    /// Counters that somebody waits for and that no statement asks, in the order in which they came.
    /// While there is one, as many statements are under way as there may be.
    ready: VecDeque<Key>,
    statements: usize,
    waiting: usize,
    waiting_max: usize,
    forgotten_at: Option<Instant>,
}

#[derive(Debug)]
struct Counter<W> {
    waiting: VecDeque<(RateLimit, W)>,
    /// It is ready, or a statement asks it.
    is_taken_care_of: bool,
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
    /// A statement is under way that is followed by one for it.
    Waiting,
    /// It waits, and whoever brought it has to begin a statement.
    First,
}

/// What the next statement asks of one counter.
#[derive(Debug)]
pub(super) struct Turn<W> {
    pub(super) key: Key,
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
        Self {
            by_key: HashMap::new(),
            ready: VecDeque::new(),
            statements: 0,
            waiting: 0,
            waiting_max,
            forgotten_at: None,
        }
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
        let fresh = || Counter { waiting: VecDeque::new(), is_taken_care_of: false, known: None };
        let counter = self.by_key.entry(key.clone()).or_insert_with(fresh);
        counter.waiting.push_back((limit, waiting));
        self.waiting += 1;
        if !std::mem::replace(&mut counter.is_taken_care_of, true) {
            self.ready.push_back(key.clone());
        }
        if self.statements >= STATEMENTS_MAX || self.ready.is_empty() {
            return Entered::Waiting;
        }
        self.statements += 1;
        Entered::First
    }

    /// What the next statement asks, of each counter once. Nothing if nobody waits: then whoever comes
    /// next is the first again.
    pub(super) fn next(&mut self, now: Instant) -> Vec<Turn<W>> {
        let mut turns = Vec::new();
        while turns.len() < TURNS_MAX
            && let Some(key) = self.ready.pop_front()
        {
            turns.extend(self.turn(key, now));
        }
        if turns.is_empty() {
            self.statements -= 1;
        }
        turns
    }

    fn turn(&mut self, key: Key, now: Instant) -> Option<Turn<W>> {
        let counter = self.by_key.get_mut(&key)?;
        let limit = counter.waiting.front()?.0;
        let mut turn = Turn { key, limit, waiting: Vec::new(), denied: Vec::new() };
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

    /// The statement that asked this counter is over. Who came meanwhile is in the next one.
    pub(super) fn asked(&mut self, key: &Key, now: Instant) {
        let Some(counter) = self.by_key.get_mut(key) else { return };
        if counter.waiting.is_empty() {
            counter.is_taken_care_of = false;
            self.keep_or_forget(key, now);
        } else {
            self.ready.push_back(key.clone());
        }
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
            self.by_key.retain(|_, counter| counter.is_taken_care_of || is_of_use(counter));
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
        assert_eq!(asked(&mut counters, now), [vec![1]]);
        for n in 2..5 {
            assert_eq!(counters.enter(&a, limit(5), n, now), Entered::Waiting);
        }
        let b = key("b");
        assert_eq!(counters.enter(&b, limit(5), 9, now), Entered::Waiting, "another counter");
        counters.asked(&a, now);
        assert_eq!(asked(&mut counters, now), [vec![9], vec![2, 3, 4]]);
        counters.asked(&a, now);
        counters.asked(&b, now);
        assert!(counters.next(now).is_empty());
        assert_eq!(counters.enter(&a, limit(5), 5, now), Entered::First);
    }

    /// Whom the next statement is for, counter by counter.
    fn asked(counters: &mut Counters<u32>, now: Instant) -> Vec<Vec<u32>> {
        counters.next(now).into_iter().map(|turn| turn.waiting).collect()
    }

    #[test]
    fn counters_that_wait_share_one_statement_and_statements_are_bounded() {
        let now = Instant::now();
        let mut counters = Counters::new(1_000);
        assert_eq!(counters.enter(&key("a"), limit(5), 0, now), Entered::First);
        assert_eq!(counters.enter(&key("b"), limit(5), 1, now), Entered::Waiting);
        assert_eq!(asked(&mut counters, now), [[0], [1]]);
        for n in 0..150 {
            let entered = counters.enter(&key(&format!("{n}")), limit(5), n, now);
            assert_eq!(entered, Entered::Waiting, "as many statements as there may be");
        }
        assert_eq!(asked(&mut counters, now).len(), TURNS_MAX);
        assert_eq!(asked(&mut counters, now).len(), 50);
    }

    #[test]
    fn a_limit_that_is_known_to_be_spent_denies_until_its_window_ends_and_no_longer() {
        let (now, a) = (Instant::now(), key("a"));
        let mut counters = Counters::new(10);
        counters.enter(&a, limit(5), 1, now);
        counters.next(now);
        counters.enter(&a, limit(5), 2, now);
        counters.learn(&a, &reserved(5, limit(5), 30), now);
        counters.asked(&a, now);
        let until = now + Duration::from_secs(30);
        let turn = counters.next(now).pop().unwrap();
        assert!(turn.waiting.is_empty());
        assert_eq!(turn.denied, [(2, until)], "it waited, and need not ask any more");
        counters.asked(&a, now);
        assert!(counters.next(now).is_empty());
        let later = now + Duration::from_secs(29);
        assert_eq!(counters.enter(&a, limit(5), 3, later), Entered::Denied { until });
        assert_eq!(counters.enter(&a, limit(5), 3, until), Entered::First);
    }

    #[test]
    fn a_limit_that_was_raised_is_asked_for_again() {
        let (now, a) = (Instant::now(), key("a"));
        let mut counters = Counters::new(10);
        counters.enter(&a, limit(5), 1, now);
        counters.next(now);
        counters.learn(&a, &reserved(7, limit(5), 30), now);
        counters.asked(&a, now);
        assert!(counters.next(now).is_empty());
        let until = now + Duration::from_secs(30);
        assert_eq!(counters.enter(&a, limit(7), 2, now), Entered::Denied { until });
        assert_eq!(counters.enter(&a, limit(8), 2, now), Entered::First);
        let other_window = RateLimit::new(5, Duration::from_secs(10)).unwrap();
        assert_eq!(counters.enter(&a, other_window, 3, now), Entered::Waiting);
        assert_eq!(asked(&mut counters, now), [[2]], "one limit a reservation");
        counters.asked(&a, now);
        assert_eq!(asked(&mut counters, now), [[3]]);
    }

    #[test]
    fn what_waits_is_bounded_over_all_counters() {
        let now = Instant::now();
        let mut counters = Counters::new(2);
        counters.enter(&key("a"), limit(5), 1, now);
        counters.enter(&key("b"), limit(5), 2, now);
        assert_eq!(counters.enter(&key("a"), limit(5), 3, now), Entered::Full);
        assert_eq!(asked(&mut counters, now), [[1], [2]]);
        assert_eq!(counters.enter(&key("a"), limit(5), 3, now), Entered::Waiting);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_what_is_over_is_forgotten() {
        let now = Instant::now();
        let mut counters = Counters::new(2);
        let mut spend = |subject: String, now: Instant, seconds: u64| {
            let key = (Limiter::Source, subject);
            counters.enter(&key, limit(1), (), now);
            counters.next(now);
            counters.learn(&key, &reserved(1, limit(1), seconds), now);
            counters.asked(&key, now);
            assert!(counters.next(now).is_empty());
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
