//! The database's clock beside this machine's: the same, unless the file is on another's.

use domain::health::ClockOffset;
use sqlx::SqlitePool;
use time::OffsetDateTime;

use crate::StoreError;
use crate::doctor::clock_offset;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::store_error;

pub(super) async fn read_clock(
    readers: &SqlitePool,
    now: fn() -> OffsetDateTime,
) -> Result<ClockOffset, StoreError> {
    let before = now();
    let UnixMicros(database) = sqlx::query_scalar(
        "-- sqlite::doctor::read_clock
        SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000",
    )
    .fetch_one(readers)
    .await
    .map_err(|error| store_error("doctor::read_clock", error))?;
    Ok(clock_offset(before, database, now()))
}
