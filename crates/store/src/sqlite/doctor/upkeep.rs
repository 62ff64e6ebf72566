//! Who does the upkeep: the worker of the server, while it lives.

use std::time::Duration;

use domain::health::Upkeep;
use sqlx::SqlitePool;

use crate::StoreError;
use crate::sqlite::errors::store_error;

pub(super) async fn upkeep(readers: &SqlitePool) -> Result<Upkeep, StoreError> {
    let row: Option<(String, i64)> = sqlx::query_as(
        "-- sqlite::doctor::upkeep
        SELECT holder, expires_at - CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000
        FROM leaders
        WHERE role = 'maintenance'",
    )
    .fetch_optional(readers)
    .await
    .map_err(|error| store_error("doctor::upkeep", error))?;
    let told = |(holder, left): (String, i64)| Upkeep {
        holder: Some(holder),
        lives: left > 0,
        ended_ago: Duration::from_micros(left.min(0).unsigned_abs()),
    };
    Ok(row.map(told).unwrap_or_default())
}
