//! Cancels what deleted endpoints still own: pending and failed deliveries, and those whose lease is
//! over. Claims never visit a deleted endpoint, so nobody else would.
//!
//! Rows that somebody holds are skipped, and skipped rows are not counted: a batch is full only of
//! rows that it can take. Endpoints are looked at for as long as they own rows, since a submission or
//! a replay may commit after the deletion.

use crate::postgres::pool::Pool;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::retry::after_conflict;

pub(super) async fn cancel_deleted(pool: &Pool, limit: u32) -> Result<u64, StoreError> {
    after_conflict(|| async {
        sqlx::query_scalar!(
            r#"-- postgres::maintenance::cancel_deleted
            WITH b AS MATERIALIZED (
                SELECT q.*
                FROM fencepost.endpoint_schedule s
                CROSS JOIN LATERAL (
                    SELECT d.endpoint, d.id, d.submission, d.attempts, d.cycle_attempts,
                        d.payload_bytes, d.state, d.claimed_by
                    FROM fencepost.deliveries d
                    WHERE d.endpoint = s.endpoint AND (d.state IN (1, 3)
                        OR (d.state = 2 AND d.claim_expires_at <= statement_timestamp()))
                    LIMIT $1
                    FOR UPDATE SKIP LOCKED
                ) q
                WHERE s.deleted
                LIMIT $1
            ), sl AS MATERIALIZED (
                SELECT s.endpoint
                FROM fencepost.endpoint_schedule s
                WHERE s.endpoint IN (SELECT endpoint FROM b)
                ORDER BY s.endpoint
                FOR NO KEY UPDATE
            ), gone AS (
                DELETE FROM fencepost.deliveries d
                WHERE d.id = ANY(ARRAY(SELECT id FROM b)) AND (SELECT count(*) FROM sl) >= 0
                RETURNING d.id
            ), settled AS (
                INSERT INTO fencepost.settled_deliveries (endpoint, id, submission, settled_at,
                    attempts, cycle_attempts, payload_bytes, state, reason, claimed_by)
                SELECT b.endpoint, b.id, b.submission, statement_timestamp(), b.attempts,
                    b.cycle_attempts, b.payload_bytes, 5, 22, b.claimed_by
                FROM b JOIN gone ON gone.id = b.id
            ), slots AS (
                UPDATE fencepost.endpoint_schedule s SET in_flight = s.in_flight - y.freed
                FROM (
                    SELECT endpoint, count(*)::int AS freed
                    FROM b WHERE state = 2 GROUP BY endpoint
                ) y
                WHERE s.endpoint = y.endpoint
            )
            SELECT count(*) AS "count!" FROM gone"#,
            i64::from(limit),
        )
        .fetch_one(pool)
        .await
    })
    .await
    .map(i64::unsigned_abs)
    .map_err(|error| store_error("maintenance::cancel_deleted", error))
}
