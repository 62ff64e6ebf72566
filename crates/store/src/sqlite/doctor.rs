//! What the database tells of its health. Plain reads, one a file.
//!
//! There is no vacuum that an old reader holds up, no partition and no notification. An index is made in a
//! transaction, so it is there or not.

mod read_clock;
mod slots;
mod strays;
mod upkeep;

use domain::health::{Facts, Partitions, Snapshots};
use time::OffsetDateTime;

use super::{SqliteStore, delivery, schema};
use crate::StoreError;
use crate::delivery::BACKLOG_PER_ENDPOINT_MAX;
use crate::doctor::reading;
use crate::hold::Holds;

impl SqliteStore {
    /// Reads all facts.
    pub(crate) async fn examine(&self, now: fn() -> OffsetDateTime) -> Result<Facts, StoreError> {
        let readers = &self.readers;
        schema::check::check(readers).await?;
        let backlog = delivery::read_backlog::read_backlog(readers, BACKLOG_PER_ENDPOINT_MAX).await;
        Ok(Facts {
            snapshots: Ok(Snapshots { holders: Vec::new(), sees_all: true }),
            dead_rows: Ok(Vec::new()),
            invalid_indexes: Ok(Vec::new()),
            partitions: Ok(Partitions::default()),
            backlog: reading(backlog),
            hold: reading(self.is_held().await),
            wake_ups: Ok(None),
            clock: reading(read_clock::read_clock(readers, now).await),
            slots: reading(slots::slots(readers).await),
            strays: reading(strays::strays(readers).await),
            upkeep: reading(upkeep::upkeep(readers).await),
        })
    }
}
