//! Cancels deliveries that were to be cancelled when a worker had them, once their lease is over.
//!
//! Only a processing delivery is ever marked: its report and its give-back settle it, and a claim
//! leaves it alone. So what is left has a lease that is over, which the index on leases finds.

use domain::delivery::CancelReason;

use super::settle_each;
use crate::StoreError;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::writer::Writer;

pub(super) async fn cancel_requested(writer: &Writer, limit: u32) -> Result<u64, StoreError> {
    writer
        .run("maintenance::cancel_requested", move |tx| {
            Box::pin(async move {
                let now = tx.now();
                let found = sqlx::query_as(
                    "-- sqlite::maintenance::cancel_requested
                    SELECT d.endpoint, d.id
                    FROM endpoint_schedule s
                    CROSS JOIN deliveries d ON d.endpoint = s.endpoint
                    WHERE d.state = 2 AND d.claim_expires_at <= ?2
                        AND d.cancel_requested_at IS NOT NULL
                    LIMIT ?1",
                )
                .bind(limit)
                .bind(UnixMicros(now))
                .fetch_all(tx.connection())
                .await?;
                settle_each(tx, found, |delivery| delivery.call_off(CancelReason::Operator, now))
                    .await
            })
        })
        .await
}
