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

use async_trait::async_trait;
use domain::delivery::{Delivery, NotApplicable};
use domain::id::{DeliveryId, EndpointKey};
use uuid::Uuid;

use super::SqliteStore;
use super::delivery::{move_in_flight, read_row, tell_failure, write_row};
use super::errors::Fault;
use super::writer::WriteTransaction;
use crate::StoreError;
use crate::maintenance::{Candidacy, Cleared, Maintenance, Recount};

#[async_trait]
impl Maintenance for SqliteStore {
    async fn lead(&self, candidacy: &Candidacy<'_>) -> Result<bool, StoreError> {
        lead::lead(&self.writer, candidacy).await
    }

    async fn resign(&self, token: Uuid) -> Result<(), StoreError> {
        resign::resign(&self.writer, token).await
    }

    async fn recount_slots(
        &self,
        after: Option<EndpointKey>,
        limit: u32,
    ) -> Result<Recount, StoreError> {
        recount_slots::recount_slots(&self.writer, after, limit).await
    }

    async fn cancel_deleted(&self, limit: u32) -> Result<u64, StoreError> {
        cancel_deleted::cancel_deleted(&self.writer, limit).await
    }

    async fn cancel_requested(&self, limit: u32) -> Result<u64, StoreError> {
        cancel_requested::cancel_requested(&self.writer, limit).await
    }

    async fn fail_held(&self, limit: u32) -> Result<u64, StoreError> {
        fail_held::fail_held(&self.writer, self.options.retention, limit).await
    }

    async fn disable_failing(&self, limit: u32) -> Result<Vec<EndpointKey>, StoreError> {
        disable_failing::disable_failing(&self.writer, limit).await
    }

    async fn expire_failed(&self, limit: u32) -> Result<u64, StoreError> {
        expire_failed::expire_failed(&self.writer, limit).await
    }

    async fn expire_keys(&self, limit: u32) -> Result<u64, StoreError> {
        expire_keys::expire_keys(&self.writer, limit).await
    }

    async fn prepare_history(&self) -> Result<(), StoreError> {
        // There are no partitions to make.
        Ok(())
    }

    async fn clear_history(&self, limit: u32) -> Result<Cleared, StoreError> {
        clear_history::clear_history(&self.writer, self.options.retention, limit).await
    }
}

/// Does to each delivery what the domain says of the event, and answers how many it applied to.
pub(super) async fn settle_each(
    tx: &mut WriteTransaction,
    found: Vec<(Uuid, Uuid)>,
    event: impl Fn(&mut Delivery) -> Result<(), NotApplicable> + Send,
) -> Result<u64, Fault> {
    let mut count = 0;
    for (endpoint, id) in found {
        let endpoint = EndpointKey::from_uuid(endpoint);
        let Some(row) = read_row(tx, endpoint, DeliveryId::from_uuid(id)).await? else { continue };
        let mut delivery = row.delivery()?;
        let held_slot = delivery.state.holds_slot();
        if event(&mut delivery).is_err() {
            continue;
        }
        write_row(tx, &row, &delivery).await?;
        tell_failure(tx, &row, &delivery).await?;
        if held_slot {
            move_in_flight(tx, endpoint, -1).await?;
        }
        count += 1;
    }
    Ok(count)
}
