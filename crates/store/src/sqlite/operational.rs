//! Events about the service itself.
//!
//! They are written where what they tell of is written. See [`crate::operational`].

mod clear_endpoint;
mod forget_events;
mod read_endpoint;
mod read_events;
mod set_endpoint;

use async_trait::async_trait;
use domain::id::EndpointKey;
use domain::operational::What;
use uuid::Uuid;

use super::SqliteStore;
use super::codec::UnixMicros;
use super::errors::Fault;
use super::writer::WriteTransaction;
use crate::operational::{OperationalEndpoint, OperationalEvents, StoredEvent};
use crate::{StoreError, codes};

#[async_trait]
impl OperationalEvents for SqliteStore {
    async fn set_operational_endpoint(
        &self,
        endpoint: EndpointKey,
    ) -> Result<Option<OperationalEndpoint>, StoreError> {
        set_endpoint::set_endpoint(&self.writer, endpoint).await
    }

    async fn clear_operational_endpoint(&self) -> Result<(), StoreError> {
        clear_endpoint::clear_endpoint(&self.writer).await
    }

    async fn read_operational_endpoint(&self) -> Result<Option<OperationalEndpoint>, StoreError> {
        read_endpoint::read_endpoint(&self.readers).await
    }

    async fn read_events(&self, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
        read_events::read_events(&self.readers, limit).await
    }

    async fn forget_events(&self, ids: &[Uuid]) -> Result<u64, StoreError> {
        forget_events::forget_events(&self.writer, ids).await
    }
}

/// Writes an event, unless nobody wants it or it is about the operator's endpoint itself.
pub(super) async fn tell(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    what: What,
) -> Result<(), Fault> {
    let (kind, code) = match what {
        What::EndpointDisabled(cause) => (1, Some(codes::of_disabled_cause(cause))),
        What::EndpointFailing(cause) => (2, Some(codes::of_open_cause(cause))),
        What::EndpointRecovered => (3, None),
        What::DeliveryFailed { reason, .. } => (4, Some(codes::of_failure_reason(reason))),
        What::SecretRotated => (5, None),
    };
    let (delivery, submission) = match what {
        What::DeliveryFailed { delivery, submission, .. } => {
            (Some(delivery.as_uuid()), Some(submission.as_uuid()))
        }
        _ => (None, None),
    };
    sqlx::query(
        "-- sqlite::operational::tell
        INSERT INTO operational_events (id, occurred_at, kind, code, endpoint, delivery, submission)
        SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
        FROM operational_endpoint o
        WHERE o.endpoint <> ?5",
    )
    .bind(crate::new_id::uuid_now())
    .bind(UnixMicros(tx.now()))
    .bind(kind)
    .bind(code)
    .bind(endpoint.as_uuid())
    .bind(delivery)
    .bind(submission)
    .execute(tx.connection())
    .await?;
    Ok(())
}
