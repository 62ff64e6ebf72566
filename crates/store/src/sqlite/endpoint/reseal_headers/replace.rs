//! Replaces the sealed headers of an endpoint that are still as they were read. Answers whether they
//! were.

use domain::id::EndpointKey;

use crate::StoreError;
use crate::sealing::Sealed;
use crate::sqlite::writer::Writer;

pub(super) async fn replace(
    writer: &Writer,
    endpoint: EndpointKey,
    before: Sealed,
    after: Sealed,
) -> Result<bool, StoreError> {
    writer
        .run("endpoint::reseal_headers::replace", move |tx| {
            Box::pin(async move {
                let done = sqlx::query(
                    "-- sqlite::endpoint::reseal_headers::replace
                    UPDATE endpoints SET headers_sealed = ?3, headers_sealing_key = ?4
                    WHERE key = ?1 AND headers_sealed = ?2",
                )
                .bind(endpoint.as_uuid())
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
