//! Expires failed deliveries whose time is over: they can no longer be replayed.
//!
//! A replay asks that the time is not over, this that it is, both of the locked row: one of the two
//! takes it.

use crate::postgres::pool::Pool;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::retry::after_conflict;

pub(super) async fn expire_failed(pool: &Pool, limit: u32) -> Result<u64, StoreError> {
    after_conflict(|| async {
        sqlx::query_scalar!(
            r#"-- postgres::maintenance::expire_failed
            WITH b AS MATERIALIZED (
                SELECT d.endpoint, d.id, d.submission, d.attempts, d.cycle_attempts,
                    d.payload_bytes, d.reason, d.claimed_by
                FROM fencepost.deliveries d
                WHERE d.state = 3 AND d.due_at <= statement_timestamp()
                ORDER BY d.due_at
                LIMIT $1
                FOR UPDATE SKIP LOCKED
            ), gone AS (
                DELETE FROM fencepost.deliveries d WHERE d.id = ANY(ARRAY(SELECT id FROM b))
                RETURNING d.id
            ), settled AS (
                INSERT INTO fencepost.settled_deliveries (endpoint, id, submission, settled_at,
                    attempts, cycle_attempts, payload_bytes, state, reason, claimed_by)
                SELECT b.endpoint, b.id, b.submission, statement_timestamp(), b.attempts,
                    b.cycle_attempts, b.payload_bytes, 6, b.reason, b.claimed_by
                FROM b JOIN gone ON gone.id = b.id
            )
            SELECT count(*) AS "count!" FROM gone"#,
            i64::from(limit),
        )
        .fetch_one(pool)
        .await
    })
    .await
    .map(i64::unsigned_abs)
    .map_err(|error| store_error("maintenance::expire_failed", error))
}
