//! Ends a term before its lease does. Whoever was superseded ends nothing.

use uuid::Uuid;

use crate::StoreError;
use crate::sqlite::writer::Writer;

pub(super) async fn resign(writer: &Writer, token: Uuid) -> Result<(), StoreError> {
    writer
        .run("maintenance::resign", move |tx| {
            Box::pin(async move {
                sqlx::query(
                    "-- sqlite::maintenance::resign
                    DELETE FROM leaders WHERE role = 'maintenance' AND token = ?1",
                )
                .bind(token)
                .execute(tx.connection())
                .await?;
                Ok(())
            })
        })
        .await
}
