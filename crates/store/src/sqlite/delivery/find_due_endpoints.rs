//! Endpoints that have something to claim: a plain read, which takes no lock.
//!
//! What is due at an endpoint whose slots are all taken is left out: a claim would get none of it.
//! What has lapsed there is not: it holds its slot already. There are no marks to sweep below.

use domain::id::EndpointKey;
use sqlx::SqlitePool;
use uuid::Uuid;

use crate::StoreError;
use crate::delivery::DueQuery;
use crate::sqlite::errors::store_error;

pub(in crate::sqlite) async fn find_due_endpoints(
    readers: &SqlitePool,
    query: DueQuery,
) -> Result<Vec<EndpointKey>, StoreError> {
    let keys: Vec<Uuid> = sqlx::query_scalar(
        "-- sqlite::delivery::find_due_endpoints
        WITH clock (now) AS MATERIALIZED (
            SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000
        )
        SELECT s.endpoint
        FROM endpoint_schedule s
        WHERE s.endpoint > coalesce(?1, x'')
            AND s.enabled AND NOT s.deleted AND NOT s.held
            AND (s.paused_until IS NULL OR s.paused_until <= (SELECT now FROM clock))
            AND (s.circuit_until IS NULL OR s.circuit_until <= (SELECT now FROM clock))
            AND (s.rate_limit IS NULL OR s.rate_window_used < s.rate_limit
                OR s.rate_window_start < (SELECT now FROM clock)
                    - (SELECT now FROM clock) % (s.rate_window_ms * 1000))
            AND (
                (s.in_flight < s.cap AND EXISTS (
                    SELECT 1 FROM deliveries d
                    WHERE d.endpoint = s.endpoint AND d.state = 1
                        AND d.due_at <= (SELECT now FROM clock)
                        AND d.cancel_requested_at IS NULL
                ))
                OR EXISTS (
                    SELECT 1 FROM deliveries d
                    WHERE d.endpoint = s.endpoint AND d.state = 2
                        AND d.claim_expires_at <= (SELECT now FROM clock)
                        AND d.cancel_requested_at IS NULL
                )
            )
        ORDER BY s.endpoint
        LIMIT ?2",
    )
    .bind(query.after.map(EndpointKey::as_uuid))
    .bind(query.limit)
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("delivery::find_due_endpoints", error))?;
    Ok(keys.into_iter().map(EndpointKey::from_uuid).collect())
}
