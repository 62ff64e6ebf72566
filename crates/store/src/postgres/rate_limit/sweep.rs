//! Deletes counters of windows that are over.
//!
//! A reservation whose statement began in a window may still wait for the counter's lock when that
//! window is over. Were the row gone by then, it would find a fresh counter. So a counter outlives its
//! window by more than any statement may take.

use crate::postgres::pool::Pool;

use crate::StoreError;
use crate::postgres::errors::store_error;

pub(in crate::postgres) async fn sweep(pool: &Pool, batch: u32) -> Result<u64, StoreError> {
    sqlx::query!(
        "-- postgres::rate_limit::sweep
        WITH over AS MATERIALIZED (
            SELECT c.ctid
            FROM fencepost.rate_limit_counters c
            WHERE c.expires_at < statement_timestamp() - interval '1 minute'
            ORDER BY c.expires_at
            LIMIT $1
            FOR UPDATE SKIP LOCKED
        )
        DELETE FROM fencepost.rate_limit_counters
        WHERE ctid = ANY(ARRAY(SELECT ctid FROM over))",
        i64::from(batch),
    )
    .execute(pool)
    .await
    .map(|done| done.rows_affected())
    .map_err(|error| store_error("rate_limit::sweep", error))
}
