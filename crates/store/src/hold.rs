//! The hold: while it is on, nothing is claimed, nothing expires and no history is removed.
//!
//! After a restore to a point in time the database owes what was sent before the crash. Under a hold an
//! operator looks at it, marks as sent what was, and lets the rest go.

use std::time::Duration;

use async_trait::async_trait;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::StoreError;

/// How many due deliveries of one endpoint are counted at most.
pub const WAITING_PER_ENDPOINT_MAX: u32 = 10_000;
/// How many endpoints are told at most.
pub const ENDPOINTS_TOLD_MAX: u32 = 100;

/// How the hold stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Whether it is on.
    pub held: bool,
    /// Since when it has been so.
    pub since: Option<OffsetDateTime>,
    /// Why, for people.
    pub reason: Option<String>,
    /// Endpoints to which a change has not come yet.
    pub endpoints_behind: u64,
    /// Claims whose lease lives: their requests may be under way.
    pub open_claims: u64,
    /// How long the longest of their leases lasts.
    pub longest_lease: Duration,
}

/// What waits at an endpoint that is open but for the hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingEndpoint {
    /// Whose.
    pub application: String,
    /// Its public id.
    pub endpoint: String,
    /// How many deliveries are due, counted up to [`WAITING_PER_ENDPOINT_MAX`].
    pub due: u64,
    /// How long the oldest has been due.
    pub oldest: Duration,
}

/// The operations of the hold.
#[async_trait]
pub trait Holds {
    /// Sets or releases the hold. When it returns, every claim that is made from then on sees it; those
    /// that were made before are counted by [`read_hold`](Self::read_hold).
    async fn set_hold(&self, held: bool, reason: Option<&str>) -> Result<(), StoreError>;

    /// Whether the hold is on.
    async fn is_held(&self) -> Result<bool, StoreError>;

    /// How it stands.
    async fn read_hold(&self) -> Result<Hold, StoreError>;

    /// What is due, by endpoint, the longest due first; only what was submitted before `below`.
    async fn read_waiting(&self, below: Option<Uuid>) -> Result<Vec<WaitingEndpoint>, StoreError>;

    /// Settles up to `limit` deliveries that are due and whose id is below this, as cancelled because they
    /// were sent before; only while the hold is on. Answers how many.
    async fn mark_sent(&self, below: Uuid, limit: u32) -> Result<u64, StoreError>;
}
