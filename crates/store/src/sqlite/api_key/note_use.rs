//! Notes that a key is used: at most one write an hour for each key, whoever else notes it at once.

use uuid::Uuid;

use crate::StoreError;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::writer::Writer;

pub(in crate::sqlite) async fn note_use(writer: &Writer, id: Uuid) -> Result<bool, StoreError> {
    writer
        .run("api_key::note_use", move |tx| {
            Box::pin(async move {
                let noted = sqlx::query(
                    "-- sqlite::api_key::note_use
                    UPDATE api_keys SET last_used_at = ?2
                    WHERE id = ?1 AND revoked_at IS NULL
                        AND (last_used_at IS NULL OR last_used_at < ?2 - 3600000000)",
                )
                .bind(id)
                .bind(UnixMicros(tx.now()))
                .execute(tx.connection())
                .await?;
                Ok(noted.rows_affected() > 0)
            })
        })
        .await
}
