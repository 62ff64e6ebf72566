//! Deliveries: the obligation to bring one submission to one endpoint.
//!
//! ```text
//!  accept -> pending --claim--> processing --2xx--------------------------> delivered
//!               ^                  |  |  \--410, cycle spent, 10 lapses---> failed --replay--> pending
//!               |                  |  |                                       \--retention---> expired
//!               +--retryable-------+  |
//!               +--given back unsent--+
//! ```
//!
//! [`Delivery`] is the specification: [`transition`] says what each event does to each state. The
//! stores do the same in SQL, under a row lock, and are tested against it. The fence is equality of
//! [`ClaimToken`]s and nothing else: not the state, and not the lease.

pub mod decide;
pub mod lease;
pub mod outcome;
pub mod retry;
pub mod transition;

use time::OffsetDateTime;

pub use decide::{Decision, RetryPolicy, Verdict, decide};
pub use outcome::{Failure, Outcome};
pub use transition::{ClaimKind, NotApplicable, Recorded};

use crate::id::ClaimToken;

/// A delivery, as far as decisions need it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Delivery {
    /// Attempts for life, which is also the highest attempt number. Only rises.
    pub attempts: u32,
    /// Attempts under the fence since it last entered the queue: what the allowance is measured by.
    pub cycle_attempts: u32,
    /// Where it stands.
    pub state: DeliveryState,
}

/// Where a delivery stands. Each variant carries only what is true in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// Owed, and due at some time.
    Pending {
        /// When the next attempt is due.
        due_at: OffsetDateTime,
        /// Lapses in a row so far.
        lapses: Option<Lapses>,
        /// The claim whose holder may still report: set if a lapse parked the delivery.
        claim: Option<ClaimToken>,
    },
    /// A worker owns it.
    Processing {
        /// Which claim owns it.
        claim: ClaimToken,
        /// When the lease ends, on the database's clock.
        claim_expires_at: OffsetDateTime,
        /// Lapses in a row before this claim.
        lapses: Option<Lapses>,
        /// Whether somebody asked to cancel it while it was claimed.
        cancel_requested: bool,
    },
    /// Not tried any more, but can be replayed.
    Failed {
        /// Why.
        reason: FailureReason,
        /// When it can no longer be replayed.
        expires_at: OffsetDateTime,
        /// The claim whose holder may still report: set if it was abandoned.
        claim: Option<ClaimToken>,
    },
    /// The receiver has it.
    Delivered,
    /// Called off.
    Cancelled {
        /// Why.
        reason: CancelReason,
    },
    /// It failed, and the time in which it could be replayed is over.
    Expired {
        /// Why it had failed.
        reason: FailureReason,
    },
}

/// Claims in a row whose lease ended with no report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lapses {
    /// How many, at least one.
    pub count: u32,
    /// When the lease of the first of them ended.
    pub since: OffsetDateTime,
}

/// The name of a state, for filters, answers and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateName {
    /// See [`DeliveryState::Pending`].
    Pending,
    /// See [`DeliveryState::Processing`].
    Processing,
    /// See [`DeliveryState::Failed`].
    Failed,
    /// See [`DeliveryState::Delivered`].
    Delivered,
    /// See [`DeliveryState::Cancelled`].
    Cancelled,
    /// See [`DeliveryState::Expired`].
    Expired,
}

impl StateName {
    /// Every state, in the order of their numbers in the database.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Processing,
        Self::Failed,
        Self::Delivered,
        Self::Cancelled,
        Self::Expired,
    ];

    /// The name in answers, filters and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Failed => "failed",
            Self::Delivered => "delivered",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether nothing but a late report can change the delivery any more.
    #[must_use]
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Delivered | Self::Cancelled | Self::Expired)
    }
}

impl DeliveryState {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> StateName {
        match self {
            Self::Pending { .. } => StateName::Pending,
            Self::Processing { .. } => StateName::Processing,
            Self::Failed { .. } => StateName::Failed,
            Self::Delivered => StateName::Delivered,
            Self::Cancelled { .. } => StateName::Cancelled,
            Self::Expired { .. } => StateName::Expired,
        }
    }

    /// The claim whose report would count.
    #[must_use]
    pub fn claim(&self) -> Option<ClaimToken> {
        match self {
            Self::Pending { claim, .. } | Self::Failed { claim, .. } => *claim,
            Self::Processing { claim, .. } => Some(*claim),
            Self::Delivered | Self::Cancelled { .. } | Self::Expired { .. } => None,
        }
    }

    /// Whether it occupies one of its endpoint's in-flight slots.
    #[must_use]
    pub fn holds_slot(&self) -> bool {
        matches!(self, Self::Processing { .. })
    }
}

/// Why a delivery failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// Every attempt that the schedule allows was made.
    AttemptsExhausted,
    /// The receiver answered 410 Gone.
    Gone,
    /// The receiver answered a status that the endpoint lists as final.
    FinalStatus,
    /// Its claims lapsed ten times in a row over 24 hours: whoever takes it dies.
    Abandoned,
    /// Its endpoint was disabled or paused for the whole retention time.
    HeldTooLong,
}

impl FailureReason {
    /// Every reason.
    pub const ALL: [Self; 5] = [
        Self::AttemptsExhausted,
        Self::Gone,
        Self::FinalStatus,
        Self::Abandoned,
        Self::HeldTooLong,
    ];

    /// The name in answers and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::Gone => "gone",
            Self::FinalStatus => "final_status",
            Self::Abandoned => "abandoned",
            Self::HeldTooLong => "held_too_long",
        }
    }
}

/// Why a delivery was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CancelReason {
    /// A person asked for it.
    Operator,
    /// Its endpoint was deleted.
    EndpointDeleted,
    /// Its payload was erased.
    PayloadErased,
    /// It was sent before the database was restored to an earlier time, an operator says.
    MarkedSent,
}

impl CancelReason {
    /// Every reason.
    pub const ALL: [Self; 4] =
        [Self::Operator, Self::EndpointDeleted, Self::PayloadErased, Self::MarkedSent];

    /// The name in answers and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::EndpointDeleted => "endpoint_deleted",
            Self::PayloadErased => "payload_erased",
            Self::MarkedSent => "marked_sent",
        }
    }
}
