//! Names the endpoint that events go to, if it is not deleted, and answers what it named.

use domain::id::EndpointKey;

use super::read_endpoint::read_named;
use crate::StoreError;
use crate::operational::OperationalEndpoint;
use crate::sqlite::writer::Writer;

pub(super) async fn set_endpoint(
    writer: &Writer,
    endpoint: EndpointKey,
) -> Result<Option<OperationalEndpoint>, StoreError> {
    writer
        .run("operational::set_endpoint", move |tx| {
            Box::pin(async move {
                let done = sqlx::query(
                    "-- sqlite::operational::set_endpoint
                    UPDATE operational_endpoint SET endpoint = ?1
                    WHERE EXISTS (
                        SELECT 1 FROM endpoints e WHERE e.key = ?1 AND e.deleted_at IS NULL)",
                )
                .bind(endpoint.as_uuid())
                .execute(tx.connection())
                .await?;
                if done.rows_affected() == 0 {
                    return Ok(None);
                }
                Ok(read_named(tx.connection()).await?)
            })
        })
        .await
}
