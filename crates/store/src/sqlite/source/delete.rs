//! Marks a source as deleted. From then on nothing is received for it; the row stays, so that its id is
//! never given again.

use domain::id::{ApplicationKey, PublicId};

use crate::StoreError;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::writer::Writer;

pub(in crate::sqlite) async fn delete(
    writer: &Writer,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<bool, StoreError> {
    let id = id.clone();
    writer
        .run("source::delete", move |tx| {
            Box::pin(async move {
                let done = sqlx::query(
                    "-- sqlite::source::delete
                    UPDATE sources SET deleted_at = ?3, version = version + 1, updated_at = ?3
                    WHERE application = ?1 AND id = ?2 AND deleted_at IS NULL",
                )
                .bind(application.as_uuid())
                .bind(id.as_str())
                .bind(UnixMicros(tx.now()))
                .execute(tx.connection())
                .await?;
                Ok(done.rows_affected() > 0)
            })
        })
        .await
}
