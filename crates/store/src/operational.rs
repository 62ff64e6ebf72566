//! Events about the service itself: where they go, and those that are not submitted yet.
//!
//! An event is a row that is written by the statement of the change that it tells of: both are there or
//! neither. Maintenance submits it to the operator's endpoint under its own idempotency key and takes the
//! row away after that, so a crash between the two loses nothing and repeats nothing. Where no endpoint is
//! named no rows are written, and none about that endpoint itself.

use async_trait::async_trait;
use domain::id::{DeliveryId, EndpointKey, SubmissionId};
use domain::operational::{OperationalEvent, What};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{StoreError, codes};

/// The operator's endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationalEndpoint {
    /// Its key.
    pub key: EndpointKey,
    /// Whose it is, by the application's public id.
    pub application: String,
    /// Its public id.
    pub id: String,
}

/// An event that is not submitted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its id, under which it is submitted once.
    pub id: Uuid,
    /// About which endpoint.
    pub about: EndpointKey,
    /// What it tells.
    pub event: OperationalEvent,
}

/// What is stored of events, and where they go.
#[async_trait]
pub trait OperationalEvents {
    /// Names the endpoint that events go to, and answers it; none if it is deleted, and nothing has changed
    /// then. Events that wait go to the new one.
    async fn set_operational_endpoint(
        &self,
        endpoint: EndpointKey,
    ) -> Result<Option<OperationalEndpoint>, StoreError>;

    /// Lets events go nowhere.
    async fn clear_operational_endpoint(&self) -> Result<(), StoreError>;

    /// The endpoint that events go to, unless it is deleted.
    async fn read_operational_endpoint(&self) -> Result<Option<OperationalEndpoint>, StoreError>;

    /// The oldest events that are not submitted yet.
    async fn read_events(&self, limit: u32) -> Result<Vec<StoredEvent>, StoreError>;

    /// Takes away events that were submitted, or that nobody wants. Answers how many there were.
    async fn forget_events(&self, ids: &[Uuid]) -> Result<u64, StoreError>;
}

/// The columns of an event, and whom its endpoint belongs to.
pub(crate) struct EventColumns {
    pub(crate) id: Uuid,
    pub(crate) about: Uuid,
    pub(crate) kind: i16,
    pub(crate) code: Option<i16>,
    pub(crate) delivery: Option<Uuid>,
    pub(crate) submission: Option<Uuid>,
    pub(crate) occurred_at: OffsetDateTime,
    pub(crate) application: String,
    pub(crate) endpoint: String,
}

impl EventColumns {
    /// The event. A mix of columns that no statement writes is [`StoreError::Corrupt`].
    pub(crate) fn stored(self) -> Result<StoredEvent, StoreError> {
        let corrupt = || StoreError::Corrupt {
            table: "operational_events",
            column: "kind",
            row: self.id.to_string(),
        };
        let what = self.what().ok_or_else(corrupt)?;
        let Self { id, about, occurred_at, application, endpoint, .. } = self;
        let event = OperationalEvent { what, occurred_at, application, endpoint };
        Ok(StoredEvent { id, about: EndpointKey::from_uuid(about), event })
    }

    fn what(&self) -> Option<What> {
        Some(match (self.kind, self.code) {
            (1, Some(cause)) => What::EndpointDisabled(codes::disabled_cause(cause)?),
            (2, Some(cause)) => What::EndpointFailing(codes::open_cause(cause)?),
            (3, None) => What::EndpointRecovered,
            (4, Some(reason)) => What::DeliveryFailed {
                delivery: DeliveryId::from_uuid(self.delivery?),
                submission: SubmissionId::from_uuid(self.submission?),
                reason: codes::failure_reason(reason)?,
            },
            (5, None) => What::SecretRotated,
            _ => return None,
        })
    }
}
