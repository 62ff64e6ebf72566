//! Endpoints that may take no more just now, and what ends that: all their in-flight slots are taken,
//! or this worker has given them their share of its places.
//!
//! An endpoint's share is a part of what is left free: who holds that much gets no more until that changes.
//! (Dynamic thresholds, Choudhury and Hahne 1998.) One whose last delivery was done promptly may hold as
//! much as is free, so alone it gets half of all. One that is slow, or has not shown yet that it is not,
//! gets a [`SLOW_PART`]th: a hundred that hang leave more than a tenth of all places to the others, not one
//! in a hundred. The memory of payloads is shared in the same way.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::id::EndpointKey;
use process::metrics;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::ring::ENDPOINTS_MAX;

/// Who holds a place for longer than this is slow. Beside it what loading and recording take is little.
const PROMPT_MAX: Duration = Duration::from_secs(1);

/// A slow endpoint holds at most one in so many of the places that are free, but one in any case.
const SLOW_PART: usize = 16;

/// Tells the dispatcher that an endpoint at its cap has a free slot again, as far as this worker
/// freed it. What other workers free is found by the next poll.
#[derive(Debug, Default)]
pub(crate) struct AtCap {
    known: Mutex<Known>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Known {
    /// At cap, as the last claim said.
    waiting: HashSet<EndpointKey>,
    /// A slot of theirs was freed since the current claim was sent, so that its answer "at cap" may
    /// be older than that.
    freed_since_claim: HashSet<EndpointKey>,
    /// Were waiting, and are not any more.
    freed: Vec<EndpointKey>,
    /// What each endpoint holds.
    held: HashMap<EndpointKey, Holding>,
    /// Freed their last place promptly.
    prompt: HashSet<EndpointKey>,
    /// Hold their share, and come back when they hold no more than this.
    served: HashMap<EndpointKey, usize>,
}

/// Places, and bytes of payloads.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Holding {
    pub(super) places: usize,
    pub(super) bytes: usize,
}

/// What a delivery of an endpoint holds, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    at_cap: Arc<AtCap>,
    endpoint: EndpointKey,
    bytes: usize,
    since: Instant,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.at_cap.freed(self.endpoint, self.bytes, self.since.elapsed());
        metrics::IN_FLIGHT.down();
    }
}

impl AtCap {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A claim is about to be sent.
    pub(super) fn claim_begins(&self) {
        self.known().freed_since_claim.clear();
    }

    /// A claim answered that the endpoint is at its cap. Answers whether a slot was freed since the
    /// claim was sent: then it is worth another claim; else it waits.
    pub(super) fn is_stale(&self, endpoint: EndpointKey) -> bool {
        let mut known = self.known();
        if known.freed_since_claim.contains(&endpoint) {
            return true;
        }
        if known.waiting.len() < ENDPOINTS_MAX {
            known.waiting.insert(endpoint);
        }
        false
    }

    /// Whether it waits for that.
    pub(super) fn is_waiting(&self, endpoint: EndpointKey) -> bool {
        self.known().waiting.contains(&endpoint)
    }

    /// A slot of the endpoint was freed by this worker, and the database knows it.
    pub(crate) fn slot_freed(&self, endpoint: EndpointKey) {
        let mut known = self.known();
        // At most as many as requests are open: whatever ends during a claim was begun before it.
        known.freed_since_claim.insert(endpoint);
        if known.waiting.remove(&endpoint) {
            known.freed.push(endpoint);
            self.freed.notify_one();
        }
    }

    /// A delivery of the endpoint takes a place, and memory for its payload.
    pub(super) fn take_place(self: &Arc<Self>, endpoint: EndpointKey, payload_bytes: u32) -> Share {
        let bytes = usize::try_from(payload_bytes).unwrap_or(usize::MAX);
        metrics::IN_FLIGHT.up();
        let mut known = self.known();
        let held = known.held.entry(endpoint).or_default();
        held.places += 1;
        held.bytes = held.bytes.saturating_add(bytes);
        Share { at_cap: Arc::clone(self), endpoint, bytes, since: Instant::now() }
    }

    /// Whether the endpoint holds its share while so much is free. Then it comes back when a quarter
    /// of its places is free again: claims of a few, and not one for each place.
    pub(super) fn has_its_share(&self, endpoint: EndpointKey, free: Holding) -> bool {
        let mut known = self.known();
        let held = known.held.get(&endpoint).copied().unwrap_or_default();
        let part = if known.prompt.contains(&endpoint) { 1 } else { SLOW_PART };
        let holds_less = |held: usize, free: usize| held == 0 || held < free / part;
        let within = free.places > 0
            && holds_less(held.places, free.places)
            && holds_less(held.bytes, free.bytes);
        if within {
            return false;
        }
        known.served.insert(endpoint, held.places - held.places.div_ceil(4));
        true
    }

    fn freed(&self, endpoint: EndpointKey, bytes: usize, held_for: Duration) {
        let mut known = self.known();
        if held_for > PROMPT_MAX {
            known.prompt.remove(&endpoint);
        } else {
            if known.prompt.len() >= ENDPOINTS_MAX {
                // Whoever still is shows it again with the next delivery.
                known.prompt.clear();
            }
            known.prompt.insert(endpoint);
        }
        let mut held = known.held.get(&endpoint).copied().unwrap_or_default();
        held.places = held.places.saturating_sub(1);
        held.bytes = held.bytes.saturating_sub(bytes);
        if held.places == 0 {
            known.held.remove(&endpoint);
        } else {
            known.held.insert(endpoint, held);
        }
        if known.served.get(&endpoint).is_some_and(|until| held.places <= *until) {
            known.served.remove(&endpoint);
            known.freed.push(endpoint);
            self.freed.notify_one();
        }
    }

    /// Those that waited and have a free slot now.
    pub(super) fn take_freed(&self) -> Vec<EndpointKey> {
        std::mem::take(&mut self.known().freed)
    }

    /// Returns when there is one.
    pub(super) async fn changed(&self) {
        self.freed.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use uuid::Uuid;

    use super::*;

    const A: EndpointKey = EndpointKey::from_uuid(Uuid::from_u128(1));
    const B: EndpointKey = EndpointKey::from_uuid(Uuid::from_u128(2));

    /// So many places, and memory enough.
    fn free(places: usize) -> Holding {
        Holding { places, bytes: usize::MAX }
    }

    /// This endpoint has just shown that it is prompt.
    fn prompt(endpoint: EndpointKey) -> Arc<AtCap> {
        let at_cap = Arc::new(AtCap::default());
        drop(at_cap.take_place(endpoint, 1));
        at_cap
    }

    #[test]
    fn an_endpoint_at_its_cap_comes_back_when_one_of_its_requests_ended() {
        let at_cap = AtCap::default();
        at_cap.claim_begins();
        assert!(!at_cap.is_stale(A));
        at_cap.slot_freed(B);
        assert!(at_cap.changed().now_or_never().is_none());
        assert!(at_cap.take_freed().is_empty());
        at_cap.slot_freed(A);
        at_cap.slot_freed(A);
        assert!(at_cap.changed().now_or_never().is_some());
        assert_eq!(at_cap.take_freed(), [A]);
        assert!(at_cap.take_freed().is_empty());
    }

    #[test]
    fn an_endpoint_holds_at_most_what_is_free_and_comes_back_when_a_quarter_is_done() {
        let at_cap = prompt(A);
        let mut shares: Vec<_> = (0..8).map(|_| at_cap.take_place(A, 1)).collect();
        assert!(!at_cap.has_its_share(A, free(9)));
        assert!(!at_cap.has_its_share(B, free(1)));
        assert!(at_cap.has_its_share(A, free(8)));
        shares.pop();
        assert!(at_cap.take_freed().is_empty());
        shares.pop();
        assert_eq!(at_cap.take_freed(), [A]);
        assert!(!at_cap.has_its_share(A, free(7)));
        drop(shares);
        assert!(at_cap.take_freed().is_empty(), "it was told once");
        assert!(at_cap.known().held.is_empty(), "nothing is kept of who holds nothing");
    }

    #[test]
    fn an_endpoint_of_large_payloads_holds_at_most_the_memory_that_is_free() {
        let at_cap = prompt(A);
        let share = at_cap.take_place(A, 1_000);
        let with = |bytes| Holding { places: 100, bytes };
        assert!(!at_cap.has_its_share(A, with(1_001)));
        assert!(at_cap.has_its_share(A, with(1_000)));
        assert!(!at_cap.has_its_share(B, with(0)), "who holds nothing is not kept out by others");
        drop(share);
        assert_eq!(at_cap.take_freed(), [A]);
    }

    #[test]
    fn however_many_endpoints_hang_a_place_stays_free() {
        const PLACES: usize = 1_024;
        let at_cap = Arc::new(AtCap::default());
        let mut held = Vec::new();
        for round in 0..PLACES {
            for number in 0..100 {
                let endpoint = EndpointKey::from_uuid(Uuid::from_u128(number));
                if !at_cap.has_its_share(endpoint, free(PLACES - held.len())) {
                    held.push(at_cap.take_place(endpoint, 1));
                }
            }
            assert!(held.len() < PLACES, "all are taken after {round} rounds");
        }
        assert!(PLACES - held.len() >= PLACES / 8, "{} are left", PLACES - held.len());
    }

    #[test]
    fn who_is_slow_holds_a_part_of_what_is_free_until_it_is_prompt_again() {
        let at_cap = prompt(A);
        let shares = [at_cap.take_place(A, 1), at_cap.take_place(A, 1)];
        assert!(!at_cap.has_its_share(A, free(40)));
        at_cap.known().held.entry(A).or_default().places += 1;
        at_cap.freed(A, 0, PROMPT_MAX * 2);
        assert!(at_cap.has_its_share(A, free(40)), "two of forty");
        assert!(!at_cap.has_its_share(A, free(48)), "two of forty-eight");
        assert!(at_cap.has_its_share(B, free(0)));
        assert!(!at_cap.has_its_share(B, free(1)), "who holds nothing is not kept out");
        drop(at_cap.take_place(A, 1));
        assert!(!at_cap.has_its_share(A, free(40)));
        drop(shares);
    }

    #[test]
    fn a_slot_that_is_freed_while_the_claim_is_under_way_is_not_missed() {
        let at_cap = AtCap::default();
        at_cap.claim_begins();
        at_cap.slot_freed(A);
        assert!(at_cap.is_stale(A));
        at_cap.claim_begins();
        assert!(!at_cap.is_stale(A));
    }
}
