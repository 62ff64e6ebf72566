//! One claim, and what its deliveries are timed by.

use std::ops::Deref;
use std::time::Duration;

use domain::delivery::lease::{LEASE_MARGIN, may_start};
use domain::id::ClaimToken;
use store::delivery::{ClaimedDelivery, HeldClaim};
use time::OffsetDateTime;
use tokio::time::Instant;

use crate::dispatch::Share;

/// A claim that the database answered.
///
/// Its two clocks are never compared with each other: instants are the database's plus what was
/// measured here, and whether there is time left is measured here alone, from before the claim was
/// sent, so that it is always judged too late rather than too early.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    token: ClaimToken,
    sent: Instant,
    database_now: OffsetDateTime,
}

impl Claim {
    pub(crate) fn new(token: ClaimToken, sent: Instant, database_now: OffsetDateTime) -> Self {
        Self { token, sent, database_now }
    }

    /// The token that reports carry.
    pub(crate) fn token(self) -> ClaimToken {
        self.token
    }

    /// How long ago it was sent.
    pub(crate) fn waited(self) -> Duration {
        self.sent.elapsed()
    }

    /// What time it is, by the database's clock.
    pub(crate) fn now(self) -> OffsetDateTime {
        self.database_now + self.waited()
    }

    /// Whether a request with that deadline may still be started.
    pub(crate) fn may_start(self, delivery: &ClaimedDelivery, deadline: Duration) -> bool {
        may_start(self.waited(), deadline, delivery.lease)
    }

    /// Whether a request may still be started with the deadline that the lease was made for.
    pub(crate) fn is_fresh(self, delivery: &ClaimedDelivery) -> bool {
        self.may_start(delivery, delivery.lease.saturating_sub(LEASE_MARGIN))
    }

    /// The claim on one delivery, to be given back.
    pub(crate) fn held(self, delivery: &ClaimedDelivery) -> HeldClaim {
        HeldClaim { endpoint: delivery.endpoint, delivery: delivery.delivery, token: self.token }
    }
}

/// A claimed delivery, with its place in its endpoint's share.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) row: ClaimedDelivery,
    /// Freed with it.
    #[expect(dead_code, reason = "it counts until it is dropped")]
    pub(crate) share: Share,
}

impl Deref for Claimed {
    type Target = ClaimedDelivery;

    fn deref(&self) -> &ClaimedDelivery {
        &self.row
    }
}
