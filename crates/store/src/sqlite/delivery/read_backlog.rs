//! What is due at open endpoints, counted up to a bound for each. A plain read of one short piece of an
//! index an endpoint.

use std::time::Duration;

use domain::health::{Backlog, OldestDue};
use domain::id::EndpointKey;
use sqlx::SqlitePool;
use uuid::Uuid;

use crate::StoreError;
use crate::sqlite::errors::store_error;

pub(in crate::sqlite) async fn read_backlog(
    readers: &SqlitePool,
    per_endpoint: u32,
) -> Result<Backlog, StoreError> {
    let rows: Vec<(Uuid, bool, i64, i64)> = sqlx::query_as(
        "-- sqlite::delivery::read_backlog
        WITH clock (now) AS MATERIALIZED (
            SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000
        )
        SELECT s.endpoint, s.in_flight >= s.cap, (
            SELECT count(*) FROM (
                SELECT 1 FROM deliveries d
                WHERE d.endpoint = s.endpoint AND d.state = 1
                    AND d.due_at <= (SELECT now FROM clock) AND d.cancel_requested_at IS NULL
                ORDER BY d.due_at
                LIMIT ?1
            )
        ) AS due, (SELECT now FROM clock) - (
            SELECT min(d.due_at) FROM deliveries d
            WHERE d.endpoint = s.endpoint AND d.state = 1
                AND d.due_at <= (SELECT now FROM clock) AND d.cancel_requested_at IS NULL
        ) AS age
        FROM endpoint_schedule s
        WHERE s.enabled AND NOT s.deleted
            AND (s.paused_until IS NULL OR s.paused_until <= (SELECT now FROM clock))
            AND s.circuit_until IS NULL
            AND due > 0",
    )
    .bind(per_endpoint)
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("delivery::read_backlog", error))?;
    let circuits_open = count_circuits_open(readers).await;
    let circuits_open =
        circuits_open.map_err(|error| store_error("delivery::read_backlog", error))?;
    let mut backlog = Backlog { circuits_open: circuits_open.unsigned_abs(), ..Backlog::default() };
    for (endpoint, at_cap, due, age) in rows {
        backlog.due = backlog.due.saturating_add(due.unsigned_abs());
        backlog.more |= due >= i64::from(per_endpoint);
        let age = Duration::from_micros(age.unsigned_abs());
        if backlog.oldest.is_none_or(|oldest| oldest.age < age) {
            let endpoint = EndpointKey::from_uuid(endpoint);
            backlog.oldest = Some(OldestDue { endpoint, age, at_cap });
        }
    }
    Ok(backlog)
}

async fn count_circuits_open(readers: &SqlitePool) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "-- sqlite::delivery::read_backlog::count_circuits_open
        SELECT count(*) FROM endpoint_schedule
        WHERE circuit_until IS NOT NULL AND enabled AND NOT deleted",
    )
    .fetch_one(readers)
    .await
}
