//! What one process does for all: upkeep of the tables.
//!
//! Every operation is right by itself, whoever calls it and however often: it changes rows only under
//! the condition that makes the change right, in the statement that makes it. The leader's lease only
//! avoids that several processes do the same work. Each call is bounded, and skips what somebody else
//! holds; what it leaves, the next call finds.

use std::time::Duration;

use async_trait::async_trait;
use domain::id::EndpointKey;
use time::Date;
use uuid::Uuid;

use crate::StoreError;

/// Leadership that somebody asks for, or keeps.
#[derive(Debug, Clone)]
pub struct Candidacy<'a> {
    /// Who asks, for people.
    pub holder: &'a str,
    /// Which term it is: never used before by another process.
    pub token: Uuid,
    /// How long it holds.
    pub lease: Duration,
}

/// What became of a recount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recount {
    /// Endpoints whose count of slots was wrong.
    pub mended: u64,
    /// Endpoints that had no schedule row: nobody would have claimed their deliveries.
    pub made: u64,
    /// Where to go on. None: these were the last.
    pub next: Option<EndpointKey>,
}

/// What became of old history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cleared {
    /// Rows that were deleted (SQLite), or days that were dropped (PostgreSQL).
    pub removed: u64,
    /// Whether there is more to remove at once.
    pub more: bool,
    /// Days that are over and had to stay, oldest first.
    pub kept: Vec<(Date, WhyKept)>,
}

/// Why a day's history stays although its time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WhyKept {
    /// Some delivery of that day is still owed or replayable.
    Owed,
    /// A transaction that is still open uses it.
    InUse,
}

impl WhyKept {
    /// The reason in words, for logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owed => "a delivery of that day is still owed or replayable",
            Self::InUse => "an open transaction uses that day's tables",
        }
    }
}

/// The operations of the maintenance leader.
#[async_trait]
pub trait Maintenance {
    /// Takes the lead if nobody has it, or keeps it under the same token. Answers whether the token
    /// leads now.
    async fn lead(&self, candidacy: &Candidacy<'_>) -> Result<bool, StoreError>;

    /// Ends the term of this token, if it is still the current one.
    async fn resign(&self, token: Uuid) -> Result<(), StoreError>;

    /// Counts the slots of up to `limit` endpoints behind `after`, and makes schedule rows that are
    /// missing.
    async fn recount_slots(
        &self,
        after: Option<EndpointKey>,
        limit: u32,
    ) -> Result<Recount, StoreError>;

    /// Cancels up to `limit` deliveries of deleted endpoints. Answers how many.
    async fn cancel_deleted(&self, limit: u32) -> Result<u64, StoreError>;

    /// Cancels up to `limit` deliveries that were to be cancelled when a worker had them, and whose
    /// lease is over. Answers how many.
    async fn cancel_requested(&self, limit: u32) -> Result<u64, StoreError>;

    /// Fails up to `limit` deliveries that a closed endpoint has held for the whole retention time, also
    /// those that lapsed there.
    /// Answers how many.
    async fn fail_held(&self, limit: u32) -> Result<u64, StoreError>;

    /// Disables up to `limit` endpoints that have been failing for too long, see
    /// [`Failing`](domain::endpoint::Failing). Answers which.
    async fn disable_failing(&self, limit: u32) -> Result<Vec<EndpointKey>, StoreError>;

    /// Expires up to `limit` failed deliveries whose time is over. Answers how many.
    async fn expire_failed(&self, limit: u32) -> Result<u64, StoreError>;

    /// Forgets up to `limit` idempotency keys whose time is over. Answers how many.
    async fn expire_keys(&self, limit: u32) -> Result<u64, StoreError>;

    /// Makes room for the history of the days to come.
    async fn prepare_history(&self) -> Result<(), StoreError>;

    /// Removes history older than the retention time of which nothing is owed any more: at most one
    /// day, or `limit` rows.
    async fn clear_history(&self, limit: u32) -> Result<Cleared, StoreError>;
}
