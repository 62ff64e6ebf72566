//! The hold.
//!
//! A claim reads what it decides by from the schedule row that it has locked: after a wait PostgreSQL
//! reads only locked rows again, and a plain read of `holds` in the claim's statement would see the
//! snapshot from before the wait. So the one row of `holds` is copied to every schedule row, and whoever
//! copies waits for the claims that hold them. A statement that makes a schedule row locks the row of
//! `holds` while it copies it: it is made before the change and seen by the copying, or sees the change.

mod is_held;
mod mark_sent;
mod read_hold;
mod read_waiting;
mod set_hold;

use async_trait::async_trait;
use uuid::Uuid;

use super::PostgresStore;
use crate::StoreError;
use crate::hold::{Hold, Holds, WaitingEndpoint};

#[async_trait]
impl Holds for PostgresStore {
    async fn set_hold(&self, held: bool, reason: Option<&str>) -> Result<(), StoreError> {
        set_hold::set_hold(&self.general, held, reason).await
    }

    async fn is_held(&self) -> Result<bool, StoreError> {
        is_held::is_held(&self.general).await
    }

    async fn read_hold(&self) -> Result<Hold, StoreError> {
        read_hold::read_hold(&self.general).await
    }

    async fn read_waiting(&self, below: Option<Uuid>) -> Result<Vec<WaitingEndpoint>, StoreError> {
        read_waiting::read_waiting(&self.general, below).await
    }

    async fn mark_sent(&self, below: Uuid, limit: u32) -> Result<u64, StoreError> {
        mark_sent::mark_sent(&self.dispatch, below, limit).await
    }
}
