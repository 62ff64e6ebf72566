//! How the hold stands, and which claims are from before it.

use std::time::Duration;

use sqlx::{FromRow, SqlitePool};

use crate::StoreError;
use crate::hold::Hold;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::store_error;

#[derive(FromRow)]
struct HoldRow {
    held: bool,
    since: Option<UnixMicros>,
    reason: Option<String>,
    behind: i64,
    open: i64,
    left: i64,
}

pub(super) async fn read_hold(readers: &SqlitePool) -> Result<Hold, StoreError> {
    let row: HoldRow = sqlx::query_as(
        "-- sqlite::hold::read_hold
        WITH clock (now) AS MATERIALIZED (
            SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000
        ), live (ends) AS MATERIALIZED (
            SELECT claim_expires_at FROM deliveries
            WHERE state = 2 AND claim_expires_at > (SELECT now FROM clock)
        )
        SELECT h.held, h.since, h.reason,
            (SELECT count(*) FROM endpoint_schedule s WHERE s.held <> h.held) AS behind,
            (SELECT count(*) FROM live) AS open,
            coalesce((SELECT max(ends) FROM live) - (SELECT now FROM clock), 0) AS left
        FROM holds h",
    )
    .fetch_one(readers)
    .await
    .map_err(|error| store_error("hold::read_hold", error))?;
    Ok(Hold {
        held: row.held,
        since: row.since.map(|UnixMicros(since)| since),
        reason: row.reason,
        endpoints_behind: row.behind.unsigned_abs(),
        open_claims: row.open.unsigned_abs(),
        longest_lease: Duration::from_micros(row.left.max(0).unsigned_abs()),
    })
}
