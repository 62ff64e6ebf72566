//! Expires failed deliveries whose time is over: they can no longer be replayed.

use super::settle_each;
use crate::StoreError;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::writer::Writer;

pub(super) async fn expire_failed(writer: &Writer, limit: u32) -> Result<u64, StoreError> {
    writer
        .run("maintenance::expire_failed", move |tx| {
            Box::pin(async move {
                let now = tx.now();
                let found = sqlx::query_as(
                    "-- sqlite::maintenance::expire_failed
                    SELECT endpoint, id
                    FROM deliveries
                    WHERE state = 3 AND due_at <= ?2
                    ORDER BY due_at
                    LIMIT ?1",
                )
                .bind(limit)
                .bind(UnixMicros(now))
                .fetch_all(tx.connection())
                .await?;
                settle_each(tx, found, |delivery| delivery.expire(now)).await
            })
        })
        .await
}
