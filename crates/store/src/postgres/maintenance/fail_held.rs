//! Fails what a closed endpoint has held for the whole retention time.
//!
//! Since when an endpoint is closed is not stored, but what has been due for that long and was not
//! taken has been held for that long, or waited for its turn. The same goes for a lease that ended so
//! long ago; its slot is freed. Whether the endpoint is closed is asked again under the lock of its
//! schedule row. What is due and what has lapsed are looked for apart, each through its own index.

use std::time::Duration;

use crate::postgres::pool::Pool;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::retry::after_conflict;

pub(super) async fn fail_held(
    pool: &Pool,
    retention: Duration,
    limit: u32,
) -> Result<u64, StoreError> {
    after_conflict(|| async {
        sqlx::query_scalar!(
            r#"-- postgres::maintenance::fail_held
            WITH due AS MATERIALIZED (
                SELECT q.*
                FROM fencepost.endpoint_schedule s
                CROSS JOIN LATERAL (
                    SELECT d.endpoint, d.id, d.state
                    FROM fencepost.deliveries d
                    WHERE d.endpoint = s.endpoint AND d.state = 1
                        AND d.due_at <= statement_timestamp() - $2::float8 * interval '1 second'
                    ORDER BY d.due_at, d.id
                    LIMIT $1
                    FOR NO KEY UPDATE SKIP LOCKED
                ) q
                WHERE NOT s.deleted
                    AND (NOT s.enabled OR s.paused_until > statement_timestamp())
                LIMIT $1
            ), lapsed AS MATERIALIZED (
                SELECT q.*
                FROM fencepost.endpoint_schedule s
                CROSS JOIN LATERAL (
                    SELECT d.endpoint, d.id, d.state
                    FROM fencepost.deliveries d
                    WHERE d.endpoint = s.endpoint AND d.state = 2
                        AND d.claim_expires_at
                            <= statement_timestamp() - $2::float8 * interval '1 second'
                        AND d.cancel_requested_at IS NULL
                    ORDER BY d.claim_expires_at
                    LIMIT $1
                    FOR NO KEY UPDATE SKIP LOCKED
                ) q
                WHERE NOT s.deleted
                    AND (NOT s.enabled OR s.paused_until > statement_timestamp())
                LIMIT GREATEST($1 - (SELECT count(*) FROM due), 0)
            ), b AS MATERIALIZED (
                SELECT * FROM due UNION ALL SELECT * FROM lapsed
            ), sl AS MATERIALIZED (
                SELECT s.endpoint
                FROM fencepost.endpoint_schedule s
                WHERE s.endpoint IN (SELECT endpoint FROM b)
                    AND (NOT s.enabled OR s.paused_until > statement_timestamp())
                ORDER BY s.endpoint
                FOR NO KEY UPDATE
            ), failed AS (
                UPDATE fencepost.deliveries d SET
                    state = 3, reason = 5,
                    due_at = statement_timestamp() + $2::float8 * interval '1 second',
                    lapses = CASE WHEN d.claim_token IS NULL THEN 0 ELSE d.lapses END,
                    lapse_since = CASE WHEN d.claim_token IS NULL THEN NULL ELSE d.lapse_since END
                WHERE d.id = ANY(ARRAY(SELECT b.id FROM b JOIN sl ON sl.endpoint = b.endpoint))
                RETURNING d.id, d.endpoint, d.submission
            ), o AS MATERIALIZED (
                SELECT endpoint FROM fencepost.operational_endpoint WHERE one
            ), told AS (
                INSERT INTO fencepost.operational_events (kind, code, endpoint, delivery, submission)
                SELECT 4, 5, f.endpoint, f.id, f.submission
                FROM failed f JOIN o ON o.endpoint <> f.endpoint
            ), slots AS (
                UPDATE fencepost.endpoint_schedule s SET in_flight = s.in_flight - y.freed
                FROM (
                    SELECT b.endpoint, count(*)::int AS freed
                    FROM b JOIN failed ON failed.id = b.id
                    WHERE b.state = 2 GROUP BY b.endpoint
                ) y
                WHERE s.endpoint = y.endpoint
            )
            SELECT count(*) AS "count!" FROM failed"#,
            i64::from(limit),
            retention.as_secs_f64(),
        )
        .fetch_one(pool)
        .await
    })
    .await
    .map(i64::unsigned_abs)
    .map_err(|error| store_error("maintenance::fail_held", error))
}
