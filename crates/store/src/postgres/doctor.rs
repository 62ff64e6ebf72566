//! What the database tells of its health. Plain reads, one a file.

mod dead_rows;
mod invalid_indexes;
mod partitions;
mod read_clock;
mod slots;
mod snapshots;
mod strays;
mod upkeep;

use domain::health::{Facts, WakeUps};
use time::OffsetDateTime;

use super::{PostgresStore, delivery, schema, wake_up};
use crate::StoreError;
use crate::delivery::BACKLOG_PER_ENDPOINT_MAX;
use crate::doctor::reading;
use crate::hold::Holds;

impl PostgresStore {
    /// Reads all facts, one after another: a database that is unwell gets no more than one question at
    /// a time.
    pub(crate) async fn examine(&self, now: fn() -> OffsetDateTime) -> Result<Facts, StoreError> {
        let pool = &self.general;
        schema::check::check(pool).await?;
        let heard = wake_up::listen::hears_itself(&self.listening, pool).await;
        let backlog = delivery::read_backlog::read_backlog(pool, BACKLOG_PER_ENDPOINT_MAX).await;
        let wake_ups =
            heard.map(|heard| Some(if heard { WakeUps::Arrive } else { WakeUps::DoNotArrive }));
        Ok(Facts {
            snapshots: reading(snapshots::snapshots(pool).await),
            dead_rows: reading(dead_rows::dead_rows(pool).await),
            invalid_indexes: reading(invalid_indexes::invalid_indexes(pool).await),
            partitions: reading(partitions::partitions(pool, self.options.retention).await),
            backlog: reading(backlog),
            hold: reading(self.is_held().await),
            wake_ups: reading(wake_ups),
            clock: reading(read_clock::read_clock(pool, now).await),
            slots: reading(slots::slots(pool).await),
            strays: reading(strays::strays(pool).await),
            upkeep: reading(upkeep::upkeep(pool).await),
        })
    }
}
