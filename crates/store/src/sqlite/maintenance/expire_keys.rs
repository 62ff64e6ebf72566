//! Forgets idempotency keys whose time is over.

use crate::StoreError;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::writer::Writer;

pub(super) async fn expire_keys(writer: &Writer, limit: u32) -> Result<u64, StoreError> {
    writer
        .run("maintenance::expire_keys", move |tx| {
            Box::pin(async move {
                let now = UnixMicros(tx.now());
                let done = sqlx::query(
                    "-- sqlite::maintenance::expire_keys
                    DELETE FROM idempotency_keys
                    WHERE (scope, key) IN (
                        SELECT scope, key FROM idempotency_keys
                        WHERE expires_at <= ?2
                        ORDER BY expires_at
                        LIMIT ?1
                    )",
                )
                .bind(limit)
                .bind(now)
                .execute(tx.connection())
                .await?;
                Ok(done.rows_affected())
            })
        })
        .await
}
