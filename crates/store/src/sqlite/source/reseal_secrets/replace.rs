//! Replaces a sealed secret that is still as it was read. Answers whether it was.

use uuid::Uuid;

use crate::StoreError;
use crate::sealing::Sealed;
use crate::sqlite::writer::Writer;

pub(super) async fn replace(
    writer: &Writer,
    id: Uuid,
    before: Sealed,
    after: Sealed,
) -> Result<bool, StoreError> {
    writer
        .run("source::reseal_secrets::replace", move |tx| {
            Box::pin(async move {
                let done = sqlx::query(
                    "-- sqlite::source::reseal_secrets::replace
                    UPDATE source_secrets SET sealed = ?3, sealing_key = ?4
                    WHERE id = ?1 AND sealed = ?2",
                )
                .bind(id)
                .bind(before.bytes)
                .bind(after.bytes)
                .bind(after.key_id)
                .execute(tx.connection())
                .await?;
                Ok(done.rows_affected() > 0)
            })
        })
        .await
}
