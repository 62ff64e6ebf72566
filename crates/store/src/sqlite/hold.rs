//! The hold.
//!
//! There is one writer, so the row of `holds` and its copies on the schedule rows change together.

mod is_held;
mod mark_sent;
mod read_hold;
mod read_waiting;
mod set_hold;

use async_trait::async_trait;
use uuid::Uuid;

use super::SqliteStore;
use crate::StoreError;
use crate::hold::{Hold, Holds, WaitingEndpoint};

#[async_trait]
impl Holds for SqliteStore {
    async fn set_hold(&self, held: bool, reason: Option<&str>) -> Result<(), StoreError> {
        set_hold::set_hold(&self.writer, held, reason).await
    }

    async fn is_held(&self) -> Result<bool, StoreError> {
        is_held::is_held(&self.readers).await
    }

    async fn read_hold(&self) -> Result<Hold, StoreError> {
        read_hold::read_hold(&self.readers).await
    }

    async fn read_waiting(&self, below: Option<Uuid>) -> Result<Vec<WaitingEndpoint>, StoreError> {
        read_waiting::read_waiting(&self.readers, below).await
    }

    async fn mark_sent(&self, below: Uuid, limit: u32) -> Result<u64, StoreError> {
        mark_sent::mark_sent(&self.writer, below, limit).await
    }
}
