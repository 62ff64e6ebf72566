//! Deletes counters of windows that are over, as late as on PostgreSQL.

use std::time::Duration;

use crate::StoreError;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::writer::Writer;

/// By how much a counter outlives its window.
const GRACE: Duration = Duration::from_mins(1);

pub(in crate::sqlite) async fn sweep(writer: &Writer, batch: u32) -> Result<u64, StoreError> {
    writer
        .run("rate_limit::sweep", move |tx| {
            Box::pin(async move {
                let before = UnixMicros(tx.now() - GRACE);
                let done = sqlx::query(
                    "-- sqlite::rate_limit::sweep
                    DELETE FROM rate_limit_counters
                    WHERE (limiter, subject, window_start) IN (
                        SELECT limiter, subject, window_start FROM rate_limit_counters
                        WHERE expires_at < ?1 ORDER BY expires_at LIMIT ?2
                    )",
                )
                .bind(before)
                .bind(batch)
                .execute(tx.connection())
                .await?;
                Ok(done.rows_affected())
            })
        })
        .await
}
