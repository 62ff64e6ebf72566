//! Takes events away.

use uuid::Uuid;

use crate::StoreError;
use crate::sqlite::codec::json_of_uuids;
use crate::sqlite::writer::Writer;

pub(super) async fn forget_events(writer: &Writer, ids: &[Uuid]) -> Result<u64, StoreError> {
    let ids = json_of_uuids(ids.iter().copied());
    writer
        .run("operational::forget_events", move |tx| {
            Box::pin(async move {
                let done = sqlx::query(
                    "-- sqlite::operational::forget_events
                    DELETE FROM operational_events
                    WHERE id IN (SELECT unhex(value, '-') FROM json_each(?1))",
                )
                .bind(ids)
                .execute(tx.connection())
                .await?;
                Ok(done.rows_affected())
            })
        })
        .await
}
