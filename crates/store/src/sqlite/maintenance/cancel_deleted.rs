//! Cancels what deleted endpoints still own: pending and failed deliveries, and those whose lease is
//! over. Claims never visit a deleted endpoint, so nobody else would.

use domain::delivery::CancelReason;

use super::settle_each;
use crate::StoreError;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::writer::Writer;

pub(super) async fn cancel_deleted(writer: &Writer, limit: u32) -> Result<u64, StoreError> {
    writer
        .run("maintenance::cancel_deleted", move |tx| {
            Box::pin(async move {
                let now = tx.now();
                let found = sqlx::query_as(
                    "-- sqlite::maintenance::cancel_deleted
                    SELECT d.endpoint, d.id
                    FROM endpoint_schedule s
                    CROSS JOIN deliveries d ON d.endpoint = s.endpoint
                    WHERE s.deleted
                        AND (d.state IN (1, 3) OR (d.state = 2 AND d.claim_expires_at <= ?2))
                    LIMIT ?1",
                )
                .bind(limit)
                .bind(UnixMicros(now))
                .fetch_all(tx.connection())
                .await?;
                settle_each(tx, found, |delivery| {
                    delivery.call_off(CancelReason::EndpointDeleted, now)
                })
                .await
            })
        })
        .await
}
