//! Endpoints that have something to claim. A plain read, which locks nothing.
//!
//! Claiming an idle endpoint costs three times as much (measured in the prototype), so the
//! dispatcher looks here first.

use domain::id::EndpointKey;

use crate::StoreError;
use crate::delivery::DueQuery;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(in crate::postgres) async fn find_due_endpoints(
    pool: &Pool,
    query: DueQuery,
) -> Result<Vec<EndpointKey>, StoreError> {
    sqlx::query_scalar!(
        r#"-- postgres::delivery::find_due_endpoints
        SELECT s.endpoint
        FROM fencepost.endpoint_schedule s
        WHERE ($1::uuid IS NULL OR s.endpoint > $1)
            AND s.enabled AND NOT s.deleted AND NOT s.held
            AND (s.paused_until IS NULL OR s.paused_until <= statement_timestamp())
            AND (s.circuit_until IS NULL OR s.circuit_until <= statement_timestamp())
            AND (s.rate_limit IS NULL OR s.rate_window_used < s.rate_limit
                OR s.rate_window_start < date_bin(
                    s.rate_window_ms * interval '1 millisecond', statement_timestamp(),
                    '1970-01-01T00:00:00Z'))
            AND (((s.in_flight < s.cap OR $3) AND EXISTS (
                SELECT FROM fencepost.deliveries d
                WHERE d.endpoint = s.endpoint AND d.state = 1
                    AND d.due_at >= CASE WHEN $3 OR s.low_water > statement_timestamp()
                        THEN '-infinity' ELSE s.low_water END
                    AND d.due_at <= statement_timestamp()
                    AND d.cancel_requested_at IS NULL
            )) OR EXISTS (
                SELECT FROM fencepost.deliveries d
                WHERE d.endpoint = s.endpoint AND d.state = 2
                    AND d.claim_expires_at >= CASE WHEN $3 OR s.lease_low > statement_timestamp()
                        THEN '-infinity' ELSE s.lease_low END
                    AND d.claim_expires_at <= statement_timestamp()
                    AND d.cancel_requested_at IS NULL
            ))
        ORDER BY s.endpoint
        LIMIT $2"#,
        query.after.map(EndpointKey::as_uuid),
        i64::from(query.limit),
        query.sweep,
    )
    .fetch_all(pool)
    .await
    .map(|keys| keys.into_iter().map(EndpointKey::from_uuid).collect())
    .map_err(|error| store_error("delivery::find_due_endpoints", error))
}
