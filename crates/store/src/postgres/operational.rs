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
use uuid::Uuid;

use super::PostgresStore;
use crate::StoreError;
use crate::operational::{OperationalEndpoint, OperationalEvents, StoredEvent};

#[async_trait]
impl OperationalEvents for PostgresStore {
    async fn set_operational_endpoint(
        &self,
        endpoint: EndpointKey,
    ) -> Result<Option<OperationalEndpoint>, StoreError> {
        set_endpoint::set_endpoint(&self.general, endpoint).await
    }

    async fn clear_operational_endpoint(&self) -> Result<(), StoreError> {
        clear_endpoint::clear_endpoint(&self.general).await
    }

    async fn read_operational_endpoint(&self) -> Result<Option<OperationalEndpoint>, StoreError> {
        read_endpoint::read_endpoint(&self.general).await
    }

    async fn read_events(&self, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
        read_events::read_events(&self.general, limit).await
    }

    async fn forget_events(&self, ids: &[Uuid]) -> Result<u64, StoreError> {
        forget_events::forget_events(&self.general, ids).await
    }
}
