//! Endpoints that hold up the claims that they are part of, and how to find them among others.

use std::collections::HashMap;
use std::time::Duration;

use domain::id::EndpointKey;
use tokio::time::Instant;

/// How many endpoints one claim names at most.
pub(super) const ENDPOINTS_PER_CLAIM: usize = 20;

/// How long an endpoint is left alone that held up a claim of its own.
const ASIDE: Duration = Duration::from_secs(10);

/// After a claim that could not be made each of its endpoints is claimed from by itself; the one that
/// then stands alone is set aside.
#[derive(Debug, Default)]
pub(super) struct Stuck {
    /// How many claims name one endpoint only.
    alone: usize,
    aside: HashMap<EndpointKey, Instant>,
}

impl Stuck {
    pub(super) fn endpoints_per_claim(&self) -> usize {
        if self.alone > 0 { 1 } else { ENDPOINTS_PER_CLAIM }
    }

    /// A claim was made.
    pub(super) fn went_well(&mut self) {
        self.alone = self.alone.saturating_sub(1);
    }

    /// A claim of these could not be made. Answers the one that is at fault, if it stood alone; else
    /// their turn comes next, one by one.
    pub(super) fn after(&mut self, endpoints: &[EndpointKey], now: Instant) -> Option<EndpointKey> {
        self.aside.retain(|_, until| *until > now);
        let [alone] = endpoints else {
            self.alone = endpoints.len();
            return None;
        };
        self.alone = self.alone.saturating_sub(1);
        self.aside.insert(*alone, now + ASIDE);
        Some(*alone)
    }

    /// Whether the endpoint is set aside.
    pub(super) fn is_stuck(&self, endpoint: EndpointKey, now: Instant) -> bool {
        self.aside.get(&endpoint).is_some_and(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_one_at_fault_is_found_by_itself_and_the_others_are_not_set_aside() {
        let endpoints: Vec<_> =
            (0..20).map(|n| EndpointKey::from_uuid(Uuid::from_u128(n))).collect();
        let at_fault = endpoints[13];
        let (mut stuck, now) = (Stuck::default(), Instant::now());
        assert_eq!(stuck.endpoints_per_claim(), ENDPOINTS_PER_CLAIM);
        assert_eq!(stuck.after(&endpoints, now), None);
        let mut failures = 0;
        for endpoint in &endpoints {
            assert_eq!(stuck.endpoints_per_claim(), 1);
            if *endpoint == at_fault {
                failures += 1;
                assert_eq!(stuck.after(&[at_fault], now), Some(at_fault));
            } else {
                stuck.went_well();
            }
        }
        assert_eq!((failures, stuck.endpoints_per_claim()), (1, ENDPOINTS_PER_CLAIM));
        for endpoint in endpoints {
            assert_eq!(stuck.is_stuck(endpoint, now), endpoint == at_fault);
        }
        assert!(!stuck.is_stuck(at_fault, now + ASIDE), "it is tried again");
    }
}
