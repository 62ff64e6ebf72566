//! Upkeep of the tables, by whoever leads. Each operation is right by itself.

mod cancel_deleted;
mod cancel_requested;
mod clear_history;
mod disable_failing;
mod expire_failed;
mod expire_keys;
mod fail_held;
mod lead;
mod recount_slots;
mod resign;

pub(super) use clear_history::first_kept;

use async_trait::async_trait;
use domain::id::EndpointKey;
use uuid::Uuid;

use super::PostgresStore;
use crate::StoreError;
use crate::maintenance::{Candidacy, Cleared, Maintenance, Recount};

#[async_trait]
impl Maintenance for PostgresStore {
    async fn lead(&self, candidacy: &Candidacy<'_>) -> Result<bool, StoreError> {
        lead::lead(&self.general, candidacy).await
    }

    async fn resign(&self, token: Uuid) -> Result<(), StoreError> {
        resign::resign(&self.general, token).await
    }

    async fn recount_slots(
        &self,
        after: Option<EndpointKey>,
        limit: u32,
    ) -> Result<Recount, StoreError> {
        recount_slots::recount_slots(&self.dispatch, after, limit).await
    }

    async fn cancel_deleted(&self, limit: u32) -> Result<u64, StoreError> {
        cancel_deleted::cancel_deleted(&self.dispatch, limit).await
    }

    async fn cancel_requested(&self, limit: u32) -> Result<u64, StoreError> {
        cancel_requested::cancel_requested(&self.dispatch, limit).await
    }

    async fn fail_held(&self, limit: u32) -> Result<u64, StoreError> {
        fail_held::fail_held(&self.dispatch, self.options.retention, limit).await
    }

    async fn disable_failing(&self, limit: u32) -> Result<Vec<EndpointKey>, StoreError> {
        disable_failing::disable_failing(&self.dispatch, limit).await
    }

    async fn expire_failed(&self, limit: u32) -> Result<u64, StoreError> {
        expire_failed::expire_failed(&self.dispatch, limit).await
    }

    async fn expire_keys(&self, limit: u32) -> Result<u64, StoreError> {
        expire_keys::expire_keys(&self.general, limit).await
    }

    async fn prepare_history(&self) -> Result<(), StoreError> {
        crate::postgres::schema::partitions::ensure_ahead(&self.general).await
    }

    async fn clear_history(&self, _limit: u32) -> Result<Cleared, StoreError> {
        clear_history::clear_history(&self.general, self.options.retention).await
    }
}
