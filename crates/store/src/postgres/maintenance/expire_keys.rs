//! Forgets idempotency keys whose time is over. One that a submission is about to renew is skipped.

use crate::postgres::pool::Pool;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::retry::after_conflict;

pub(super) async fn expire_keys(pool: &Pool, limit: u32) -> Result<u64, StoreError> {
    after_conflict(|| async {
        sqlx::query!(
            r#"-- postgres::maintenance::expire_keys
            WITH l AS MATERIALIZED (
                SELECT k.ctid
                FROM fencepost.idempotency_keys k
                WHERE k.expires_at <= statement_timestamp()
                ORDER BY k.expires_at
                LIMIT $1
                FOR UPDATE SKIP LOCKED
            )
            DELETE FROM fencepost.idempotency_keys
            WHERE ctid = ANY(ARRAY(SELECT ctid FROM l))"#,
            i64::from(limit),
        )
        .execute(pool)
        .await
    })
    .await
    .map(|done| done.rows_affected())
    .map_err(|error| store_error("maintenance::expire_keys", error))
}
