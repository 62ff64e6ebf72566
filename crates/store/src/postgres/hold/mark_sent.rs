//! Settles what is due and was sent before the database was restored.
//!
//! Whether the hold is on is asked again under the lock of the schedule row: while it is, nobody claims
//! what is settled here.

use uuid::Uuid;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;

pub(super) async fn mark_sent(pool: &Pool, below: Uuid, limit: u32) -> Result<u64, StoreError> {
    after_conflict(|| async {
        sqlx::query_scalar!(
            r#"-- postgres::hold::mark_sent
            WITH b AS MATERIALIZED (
                SELECT q.*
                FROM fencepost.endpoint_schedule s
                CROSS JOIN LATERAL (
                    SELECT d.endpoint, d.id, d.submission, d.attempts, d.cycle_attempts,
                        d.payload_bytes, d.state, d.claimed_by
                    FROM fencepost.deliveries d
                    WHERE d.endpoint = s.endpoint AND d.id < $2
                        AND ((d.state = 1 AND d.due_at <= statement_timestamp())
                            OR (d.state = 2 AND d.claim_expires_at <= statement_timestamp()))
                    LIMIT $1
                    FOR UPDATE SKIP LOCKED
                ) q
                WHERE s.held
                LIMIT $1
            ), sl AS MATERIALIZED (
                SELECT s.endpoint
                FROM fencepost.endpoint_schedule s
                WHERE s.endpoint IN (SELECT endpoint FROM b) AND s.held
                ORDER BY s.endpoint
                FOR NO KEY UPDATE
            ), gone AS (
                DELETE FROM fencepost.deliveries d
                WHERE d.id = ANY(ARRAY(SELECT b.id FROM b JOIN sl ON sl.endpoint = b.endpoint))
                RETURNING d.id
            ), settled AS (
                INSERT INTO fencepost.settled_deliveries (endpoint, id, submission, settled_at,
                    attempts, cycle_attempts, payload_bytes, state, reason, claimed_by)
                SELECT b.endpoint, b.id, b.submission, statement_timestamp(), b.attempts,
                    b.cycle_attempts, b.payload_bytes, 5, 24, b.claimed_by
                FROM b JOIN gone ON gone.id = b.id
            ), slots AS (
                UPDATE fencepost.endpoint_schedule s SET in_flight = s.in_flight - y.freed
                FROM (
                    SELECT b.endpoint, count(*)::int AS freed
                    FROM b JOIN gone ON gone.id = b.id
                    WHERE b.state = 2 GROUP BY b.endpoint
                ) y
                WHERE s.endpoint = y.endpoint
            )
            SELECT count(*) AS "count!" FROM gone"#,
            i64::from(limit),
            below,
        )
        .fetch_one(pool)
        .await
    })
    .await
    .map(i64::unsigned_abs)
    .map_err(|error| store_error("hold::mark_sent", error))
}
