//! What would be sent if the hold were released, by endpoint.

use std::time::Duration;

use sqlx::SqlitePool;
use uuid::Uuid;

use crate::StoreError;
use crate::hold::{ENDPOINTS_TOLD_MAX, WAITING_PER_ENDPOINT_MAX, WaitingEndpoint};
use crate::sqlite::errors::store_error;

pub(super) async fn read_waiting(
    readers: &SqlitePool,
    below: Option<Uuid>,
) -> Result<Vec<WaitingEndpoint>, StoreError> {
    let rows: Vec<(String, String, i64, i64)> = sqlx::query_as(
        "-- sqlite::hold::read_waiting
        WITH clock (now) AS MATERIALIZED (
            SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000
        ), waiting (endpoint, since) AS MATERIALIZED (
            SELECT d.endpoint, CASE d.state WHEN 1 THEN d.due_at ELSE d.claim_expires_at END
            FROM deliveries d
            WHERE d.id < ?1 AND d.cancel_requested_at IS NULL
                AND ((d.state = 1 AND d.due_at <= (SELECT now FROM clock))
                    OR (d.state = 2 AND d.claim_expires_at <= (SELECT now FROM clock)))
        )
        SELECT a.id, e.id, min(count(*), ?2), (SELECT now FROM clock) - min(w.since) AS age
        FROM waiting w
        JOIN endpoint_schedule s ON s.endpoint = w.endpoint
        JOIN endpoints e ON e.key = s.endpoint
        JOIN applications a ON a.key = e.application
        WHERE s.enabled AND NOT s.deleted
            AND (s.paused_until IS NULL OR s.paused_until <= (SELECT now FROM clock))
        GROUP BY e.key
        ORDER BY age DESC
        LIMIT ?3",
    )
    .bind(below.unwrap_or(Uuid::max()))
    .bind(WAITING_PER_ENDPOINT_MAX)
    .bind(ENDPOINTS_TOLD_MAX)
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("hold::read_waiting", error))?;
    let told = |(application, endpoint, due, age): (String, String, i64, i64)| WaitingEndpoint {
        application,
        endpoint,
        due: due.unsigned_abs(),
        oldest: Duration::from_micros(age.max(0).unsigned_abs()),
    };
    Ok(rows.into_iter().map(told).collect())
}
