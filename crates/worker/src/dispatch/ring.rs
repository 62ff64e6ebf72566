//! The endpoints that have something to claim, served in turn.

use std::collections::{HashSet, VecDeque};

use domain::id::EndpointKey;

/// How many endpoints stand in a ring at most. The others are found when there is room.
pub(super) const ENDPOINTS_MAX: usize = 4_096;

/// Due endpoints, each once. Whoever was served goes to the back, so that one with a million due
/// deliveries waits for its turn like any other.
#[derive(Debug, Default)]
pub(super) struct Ring {
    turns: VecDeque<EndpointKey>,
    members: HashSet<EndpointKey>,
}

/// Whom the next claim serves, and how much of each it takes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) endpoints: Vec<EndpointKey>,
    pub(super) per_endpoint: u16,
}

impl Ring {
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// How many more endpoints have room.
    pub(super) fn room(&self) -> usize {
        ENDPOINTS_MAX.saturating_sub(self.turns.len())
    }

    /// Puts an endpoint at the back, if it is not in the ring and there is room.
    pub(super) fn add(&mut self, endpoint: EndpointKey) {
        if self.room() > 0 && self.members.insert(endpoint) {
            self.turns.push_back(endpoint);
        }
    }

    /// Takes those whose turn it is, at most `endpoints_max`, for a claim of `free` deliveries, at most
    /// `per_endpoint` of each.
    ///
    /// What is free is shared evenly among the endpoints of the claim: none of them could use up what
    /// another was asked for, and an answer `More` means the same for each.
    pub(super) fn take_turn(&mut self, free: u16, per_endpoint: u16, endpoints_max: usize) -> Turn {
        let free = usize::from(free);
        let count = self.turns.len().min(endpoints_max).min(free);
        let endpoints: Vec<EndpointKey> = self.turns.drain(..count).collect();
        for endpoint in &endpoints {
            self.members.remove(endpoint);
        }
        let share = free.checked_div(count).unwrap_or_default();
        let share = u16::try_from(share).unwrap_or(u16::MAX).min(per_endpoint);
        Turn { endpoints, per_endpoint: share }
    }

    /// Puts endpoints of a claim that was not made back to the front, in their order.
    pub(super) fn put_back(&mut self, endpoints: &[EndpointKey]) {
        for endpoint in endpoints.iter().rev() {
            if self.members.insert(*endpoint) {
                self.turns.push_front(*endpoint);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use uuid::Uuid;

    use super::super::stuck::ENDPOINTS_PER_CLAIM;
    use super::*;

    fn endpoint(number: u128) -> EndpointKey {
        EndpointKey::from_uuid(Uuid::from_u128(number))
    }

    fn ring(endpoints: impl IntoIterator<Item = u128>) -> Ring {
        let mut ring = Ring::default();
        endpoints.into_iter().for_each(|number| ring.add(endpoint(number)));
        ring
    }

    /// Serves turns of a database with these backlogs until all is claimed; answers how much of whom
    /// was claimed, turn by turn.
    fn drain(mut backlog: HashMap<EndpointKey, u32>, free: u16) -> Vec<Vec<(EndpointKey, u32)>> {
        let mut ring = Ring::default();
        let mut due: Vec<_> = backlog.keys().copied().collect();
        due.sort();
        for endpoint in due {
            ring.add(endpoint);
        }
        let mut turns = Vec::new();
        while !ring.is_empty() {
            let turn = ring.take_turn(free, 16, ENDPOINTS_PER_CLAIM);
            let mut claimed = Vec::new();
            for endpoint in turn.endpoints {
                let left = backlog.get_mut(&endpoint).unwrap();
                let taken = u32::from(turn.per_endpoint).min(*left);
                *left -= taken;
                claimed.push((endpoint, taken));
                if taken == u32::from(turn.per_endpoint) {
                    ring.add(endpoint);
                }
            }
            turns.push(claimed);
        }
        assert!(backlog.values().all(|left| *left == 0));
        turns
    }

    #[test]
    fn an_endpoint_stands_in_the_ring_once_and_is_served_in_turn() {
        let mut ring = ring([3, 1, 3, 2]);
        let turn = ring.take_turn(2, 16, ENDPOINTS_PER_CLAIM);
        assert_eq!(turn, Turn { endpoints: vec![endpoint(3), endpoint(1)], per_endpoint: 1 });
        ring.add(endpoint(3));
        assert_eq!(
            ring.take_turn(128, 16, ENDPOINTS_PER_CLAIM).endpoints,
            [endpoint(2), endpoint(3)]
        );
        assert!(ring.is_empty());
        assert_eq!(ring.take_turn(128, 16, ENDPOINTS_PER_CLAIM).endpoints, []);
    }

    #[test]
    fn a_claim_never_asks_for_more_than_is_free() {
        for free in 1..=300 {
            for members in [1, 2, 7, 20, 21, 500] {
                let turn = ring(0..members).take_turn(free, 16, ENDPOINTS_PER_CLAIM);
                let asked = turn.endpoints.len() * usize::from(turn.per_endpoint);
                assert!((1..=usize::from(free)).contains(&asked), "{free} {members}: {turn:?}");
                assert!(turn.endpoints.len() <= ENDPOINTS_PER_CLAIM && turn.per_endpoint <= 16);
            }
        }
    }

    #[test]
    fn an_endless_endpoint_delays_the_others_by_no_more_than_its_share() {
        let endless = endpoint(0);
        let mut backlog: HashMap<_, _> = (1..=40).map(|n| (endpoint(n), 3)).collect();
        backlog.insert(endless, 10_000);
        let turns = drain(backlog, 64);
        let last = turns
            .iter()
            .rposition(|claimed| claimed.iter().any(|(e, taken)| *e != endless && *taken > 0))
            .unwrap();
        let claimed = |mine: bool| -> u32 {
            let until = turns.iter().take(last + 1).flatten();
            until.filter(|(e, _)| (*e == endless) == mine).map(|(_, taken)| taken).sum()
        };
        assert_eq!(claimed(false), 120);
        assert!(claimed(true) <= 12, "{} beside 3 of each other", claimed(true));
    }

    #[test]
    fn a_newcomer_waits_for_one_round_only() {
        let mut ring = ring(0..40);
        ring.add(endpoint(99));
        let mut turns = 0;
        loop {
            let turn = ring.take_turn(128, 16, ENDPOINTS_PER_CLAIM);
            turns += 1;
            if turn.endpoints.contains(&endpoint(99)) {
                break;
            }
            turn.endpoints.into_iter().for_each(|endpoint| ring.add(endpoint));
        }
        assert_eq!(turns, 3);
    }

    #[test]
    fn the_ring_is_bounded_and_a_failed_claim_keeps_its_turn() {
        let mut ring = ring(0..5_000);
        assert_eq!(ring.room(), 0);
        let turn = ring.take_turn(3, 16, ENDPOINTS_PER_CLAIM);
        ring.put_back(&turn.endpoints);
        assert_eq!(ring.take_turn(3, 16, ENDPOINTS_PER_CLAIM), turn);
    }
}
