//! Settles what is due and was sent before the database was restored.

use domain::delivery::CancelReason;
use uuid::Uuid;

use crate::StoreError;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::maintenance::settle_each;
use crate::sqlite::writer::Writer;

pub(super) async fn mark_sent(writer: &Writer, below: Uuid, limit: u32) -> Result<u64, StoreError> {
    writer
        .run("hold::mark_sent", move |tx| {
            Box::pin(async move {
                let now = tx.now();
                let found = sqlx::query_as(
                    "-- sqlite::hold::mark_sent
                    SELECT d.endpoint, d.id
                    FROM endpoint_schedule s
                    CROSS JOIN deliveries d ON d.endpoint = s.endpoint
                    WHERE s.held AND d.id < ?3
                        AND ((d.state = 1 AND d.due_at <= ?2)
                            OR (d.state = 2 AND d.claim_expires_at <= ?2))
                    LIMIT ?1",
                )
                .bind(limit)
                .bind(UnixMicros(now))
                .bind(below)
                .fetch_all(tx.connection())
                .await?;
                settle_each(tx, found, |delivery| delivery.call_off(CancelReason::MarkedSent, now))
                    .await
            })
        })
        .await
}
