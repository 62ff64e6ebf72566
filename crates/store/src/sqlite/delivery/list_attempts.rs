//! The attempts of a delivery, by number.

use bytes::Bytes;
use sqlx::{FromRow, SqlitePool};

use crate::delivery::{AttemptView, DeliveryView, Evidence};
use crate::sqlite::codec::{UnixMicros, corrupt};
use crate::sqlite::errors::store_error;
use crate::{StoreError, codes};

#[derive(FromRow)]
struct Row {
    started_at: UnixMicros,
    recorded_at: UnixMicros,
    number: u32,
    duration_ms: u32,
    outcome: i16,
    status: Option<u16>,
    late: bool,
    response_truncated: bool,
    worker: String,
    url: String,
    location: Option<String>,
    detail: Option<String>,
    response: Option<Vec<u8>>,
}

/// Those that the delivery counts: one recorded since it was read would not fit to it.
pub(in crate::sqlite) async fn list_attempts(
    readers: &SqlitePool,
    delivery: &DeliveryView,
) -> Result<Vec<AttemptView>, StoreError> {
    let rows: Vec<Row> = sqlx::query_as(
        "-- sqlite::delivery::list_attempts
        SELECT started_at, recorded_at, number, duration_ms, outcome, status, late,
            response_truncated, worker, url, location, detail, response
        FROM attempts
        WHERE endpoint = ?1 AND delivery = ?2 AND number <= ?3
        ORDER BY number",
    )
    .bind(delivery.endpoint.as_uuid())
    .bind(delivery.id.as_uuid())
    .bind(delivery.attempts)
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("delivery::list_attempts", error))?;
    let view = |row: Row| {
        let outcome = codes::outcome_name(row.outcome)
            .ok_or_else(|| corrupt("attempts", "outcome", delivery.id))?;
        Ok(AttemptView {
            number: row.number,
            late: row.late,
            worker: row.worker,
            started_at: row.started_at.0,
            recorded_at: row.recorded_at.0,
            duration_millis: row.duration_ms,
            outcome,
            status: row.status,
            evidence: Evidence {
                url: row.url,
                response: row.response.map(Bytes::from).unwrap_or_default(),
                response_truncated: row.response_truncated,
                location: row.location,
                detail: row.detail,
            },
        })
    };
    rows.into_iter().map(view).collect()
}
