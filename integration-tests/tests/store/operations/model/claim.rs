//! Claims: in the order of the request, what has lapsed first, then what is due.

use std::cmp::Reverse;

use domain::delivery::lease::lease_for;
use domain::delivery::{ClaimKind, DeliveryState};
use domain::id::{ClaimToken, DeliveryId, EndpointKey};
use store::delivery::Standing;

use super::{Model, ModelDelivery, RETENTION};

/// What a claim did with one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Taken {
    pub(crate) delivery: DeliveryId,
    pub(crate) kind: u8,
    pub(crate) attempts: Option<u32>,
    pub(crate) cycle_attempts: Option<u32>,
    pub(crate) lapses: u32,
}

/// Kinds in an order, since answers come in none.
pub(crate) fn kind_number(kind: ClaimKind) -> u8 {
    match kind {
        ClaimKind::Fresh => 1,
        ClaimKind::Reclaimed => 2,
        ClaimKind::Parked => 3,
        ClaimKind::Abandoned => 4,
    }
}

impl Model {
    pub(crate) fn find_due(&self) -> Vec<EndpointKey> {
        let open = self.endpoints.iter().filter(|(_, endpoint)| endpoint.is_open());
        let due = open.filter(|(key, endpoint)| {
            let cap = i64::from(endpoint.settings.in_flight_max());
            if endpoint.circuit.admits(self.now) == 0 {
                return false;
            }
            let has_room = self.in_flight(**key) < cap;
            self.deliveries.values().filter(|it| it.endpoint == **key).any(|it| {
                !it.cancel_requested()
                    && (it.has_lapsed(self.now) || has_room && it.is_due(self.now))
            })
        });
        due.map(|(key, _)| *key).collect()
    }

    pub(crate) fn claim(
        &mut self,
        endpoints: &[EndpointKey],
        (per_endpoint, total): (u32, u32),
        token: ClaimToken,
    ) -> (Vec<Taken>, Vec<(EndpointKey, Standing)>) {
        let (mut taken, mut standings) = (Vec::new(), Vec::new());
        for key in endpoints {
            let owned = |taken: &[Taken]| taken.iter().filter(|it| it.kind < 3).count();
            let asked = per_endpoint
                .min(total.saturating_sub(u32::try_from(owned(&taken)).unwrap_or(u32::MAX)));
            standings.push((*key, self.claim_of(*key, asked, token, &mut taken)));
        }
        taken.sort_unstable();
        standings.sort_unstable_by_key(|(key, _)| *key);
        (taken, standings)
    }

    fn claim_of(
        &mut self,
        key: EndpointKey,
        asked: u32,
        token: ClaimToken,
        taken: &mut Vec<Taken>,
    ) -> Standing {
        let Some(endpoint) = self.endpoints.get(&key).filter(|endpoint| endpoint.is_open()) else {
            return Standing::Closed;
        };
        let admitted = endpoint.circuit.admits(self.now);
        if admitted == 0 {
            return Standing::Closed;
        }
        let cap = i64::from(endpoint.settings.in_flight_max());
        let lease = lease_for(endpoint.settings.deadline());
        let asked = asked.min(admitted);
        let lapsed = self.in_order(key, |it| match it.delivery.state {
            DeliveryState::Processing { claim_expires_at, cancel_requested: false, .. } => {
                (claim_expires_at <= self.now).then_some(claim_expires_at)
            }
            _ => None,
        });
        let limit = usize::try_from(asked).unwrap_or(usize::MAX);
        let mut reclaimed = 0;
        let lapsed: Vec<DeliveryId> = lapsed.into_iter().take(limit).collect();
        for id in &lapsed {
            let kind = self.take(*id, token, taken);
            reclaimed += u32::from(kind == Some(ClaimKind::Reclaimed));
        }
        let room = (cap - self.in_flight(key)).clamp(0, i64::from(asked - reclaimed));
        let due = self.in_order(key, |it| match it.delivery.state {
            DeliveryState::Pending { due_at, .. } => (due_at <= self.now).then_some(due_at),
            _ => None,
        });
        let mut fresh = 0;
        for id in due.into_iter().take(usize::try_from(room).unwrap_or(0)) {
            fresh += u32::from(self.take(id, token, taken).is_some());
        }
        let sent = fresh + reclaimed;
        if let Some(endpoint) = self.endpoints.get_mut(&key).filter(|_| sent > 0) {
            endpoint.circuit.claim(token, lease, self.now);
        }
        if self.in_flight(key) >= cap {
            Standing::AtCap
        } else if sent >= admitted {
            Standing::Limited
        } else if lapsed.len() == limit || fresh + reclaimed == asked {
            Standing::More
        } else {
            Standing::Empty
        }
    }

    /// The endpoint's deliveries that have such an instant, the earliest first.
    fn in_order(
        &self,
        endpoint: EndpointKey,
        instant: impl Fn(&ModelDelivery) -> Option<time::OffsetDateTime>,
    ) -> Vec<DeliveryId> {
        let of_it = self.deliveries.iter().filter(|(_, it)| it.endpoint == endpoint);
        let mut found: Vec<_> =
            of_it.filter_map(|(id, it)| instant(it).map(|at| (at, *id))).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }

    fn take(
        &mut self,
        id: DeliveryId,
        token: ClaimToken,
        taken: &mut Vec<Taken>,
    ) -> Option<ClaimKind> {
        let it = self.deliveries.get_mut(&id)?;
        let settings = &self.endpoints.get(&it.endpoint)?.settings;
        let lease = lease_for(settings.deadline());
        let mut delivery = it.delivery.clone();
        let kind =
            delivery.claim(token, lease, settings.retry_schedule(), RETENTION, self.now).ok()?;
        if kind == ClaimKind::Abandoned {
            it.lapses += 1;
        }
        it.write(delivery);
        let counts = |count: u32| kind.is_owned().then_some(count);
        taken.push(Taken {
            delivery: id,
            kind: kind_number(kind),
            attempts: counts(it.delivery.attempts),
            cycle_attempts: counts(it.delivery.cycle_attempts),
            lapses: it.lapses,
        });
        Some(kind)
    }

    /// Deliveries, those that `is_meant` picks first, the newest first in each part.
    pub(crate) fn first_those(&self, is_meant: impl Fn(&ModelDelivery) -> bool) -> Vec<DeliveryId> {
        let mut all: Vec<_> = self.deliveries.iter().collect();
        all.sort_by_key(|(id, it)| (!is_meant(it), Reverse(**id)));
        all.into_iter().map(|(id, _)| *id).collect()
    }
}
