//! Lets events go nowhere.

use crate::StoreError;
use crate::sqlite::writer::Writer;

pub(super) async fn clear_endpoint(writer: &Writer) -> Result<(), StoreError> {
    writer
        .run("operational::clear_endpoint", |tx| {
            Box::pin(async move {
                sqlx::query(
                    "-- sqlite::operational::clear_endpoint
                    UPDATE operational_endpoint SET endpoint = NULL",
                )
                .execute(tx.connection())
                .await?;
                Ok(())
            })
        })
        .await
}
