//! When to look for due endpoints, and where to go on.

use std::time::Duration;

use domain::id::EndpointKey;
use store::delivery::DueQuery;
use tokio::time::Instant;

/// How many endpoints one look finds at most.
pub(super) const PAGE: usize = 512;

/// However many wake-ups come, two rounds do not start closer than this.
const WAKE_GAP: Duration = Duration::from_millis(5);

/// Goes round all endpoints, page by page. A round starts at every poll; the first one after the
/// sweep interval is a sweep, which also finds what committed late.
#[derive(Debug)]
pub(super) struct Round {
    /// The next round's start, if nobody wakes it before.
    next_at: Instant,
    /// Somebody told that something is due, and no round has started since.
    woken: bool,
    /// The soonest that a woken round starts.
    woken_at: Instant,
    sweep_at: Instant,
    sweep: bool,
    /// Behind whom this round goes on; `None` between rounds.
    after: Option<EndpointKey>,
}

impl Round {
    /// The first round starts now, and is a sweep: nobody knows what happened before.
    pub(super) fn starting(now: Instant) -> Self {
        Self { next_at: now, woken: false, woken_at: now, sweep_at: now, sweep: false, after: None }
    }

    /// When to look next, if nothing happens before.
    pub(super) fn next_at(&self) -> Instant {
        if self.woken { self.next_at.min(self.woken_at) } else { self.next_at }
    }

    /// Something is due: the next round does not wait for its poll.
    pub(super) fn wake(&mut self) {
        self.woken = true;
    }

    /// The next page to look at, if it is time, and `room` for what it may find.
    ///
    /// A round that has begun goes on as soon as there is room.
    pub(super) fn due(&mut self, now: Instant, room: usize) -> Option<DueQuery> {
        if room < PAGE || (self.after.is_none() && now < self.next_at()) {
            return None;
        }
        if self.after.is_none() {
            self.sweep = now >= self.sweep_at;
        }
        let limit = u32::try_from(PAGE).unwrap_or(u32::MAX);
        Some(DueQuery { after: self.after, limit, sweep: self.sweep })
    }

    /// Whether a look would be made now, were there room for what it finds.
    pub(super) fn is_held_up(&self, now: Instant, room: usize) -> bool {
        room < PAGE && (self.after.is_some() || now >= self.next_at())
    }

    /// Takes in what the page held. The next round is `poll` away, the next sweep `sweep` after the
    /// start of this one.
    pub(super) fn found(
        &mut self,
        page: &[EndpointKey],
        now: Instant,
        poll: Duration,
        sweep: Duration,
    ) {
        if self.after.is_none() {
            // A wake-up that comes from here on is for the next round.
            self.woken = false;
            self.woken_at = now + WAKE_GAP;
            if self.sweep {
                self.sweep_at = now + sweep;
            }
        }
        self.after = if page.len() >= PAGE { page.last().copied() } else { None };
        self.next_at = now + poll;
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const POLL: Duration = Duration::from_millis(200);
    const SWEEP: Duration = Duration::from_secs(15);

    fn page(from: u128, count: usize) -> Vec<EndpointKey> {
        (from..).take(count).map(|n| EndpointKey::from_uuid(Uuid::from_u128(n))).collect()
    }

    #[tokio::test]
    async fn a_round_goes_through_all_pages_and_then_waits_for_the_next_poll() {
        let start = Instant::now();
        let mut round = Round::starting(start);
        let query = round.due(start, PAGE).unwrap();
        assert_eq!((query.after, query.sweep), (None, true));
        round.found(&page(0, PAGE), start, POLL, SWEEP);
        let query = round.due(start, PAGE).unwrap();
        assert_eq!(query.after, page(0, PAGE).last().copied());
        assert!(query.sweep);
        round.found(&page(1_000, 3), start, POLL, SWEEP);
        assert!(round.due(start, PAGE).is_none());
        let query = round.due(start + POLL, PAGE).unwrap();
        assert_eq!((query.after, query.sweep), (None, false));
    }

    #[tokio::test]
    async fn a_sweep_comes_after_its_interval_even_beside_many_polls() {
        let start = Instant::now();
        let mut round = Round::starting(start);
        let mut sweeps = Vec::new();
        for tick in 0..200 {
            let now = start + POLL * tick;
            if round.due(now, PAGE).unwrap().sweep {
                sweeps.push(now - start);
            }
            round.found(&[], now, POLL, SWEEP);
        }
        assert_eq!(sweeps, [Duration::ZERO, SWEEP, SWEEP * 2]);
    }

    #[tokio::test]
    async fn a_woken_round_starts_at_once_when_it_was_quiet_and_rarely_when_it_is_not() {
        let start = Instant::now();
        let mut round = Round::starting(start);
        round.found(&[], start, POLL, SWEEP);
        round.wake();
        assert!(round.due(start, PAGE).is_none());
        assert_eq!(round.next_at(), start + WAKE_GAP);
        let now = start + WAKE_GAP;
        assert!(round.due(now, PAGE).is_some());
        // A look that failed is tried again; one that succeeded has taken the wake-up.
        assert!(round.due(now, PAGE).is_some());
        round.found(&[], now, POLL, SWEEP);
        assert_eq!(round.next_at(), now + POLL);
        let quiet = now + POLL / 2;
        round.wake();
        assert!(round.due(quiet, PAGE).is_some());
    }

    #[tokio::test]
    async fn a_wake_up_in_the_middle_of_a_round_starts_another() {
        let start = Instant::now();
        let mut round = Round::starting(start);
        round.found(&page(0, PAGE), start, POLL, SWEEP);
        round.wake();
        round.found(&page(1_000, 3), start, POLL, SWEEP);
        assert_eq!(round.next_at(), start + WAKE_GAP);
    }

    #[tokio::test]
    async fn nothing_is_looked_for_that_has_no_room() {
        let now = Instant::now();
        assert!(Round::starting(now).due(now, PAGE - 1).is_none());
    }
}
