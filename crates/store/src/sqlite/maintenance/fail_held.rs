//! Fails what a closed endpoint has held for the whole retention time.
//!
//! Since when an endpoint is closed is not stored, but what has been due for that long and was not
//! taken has been held for that long, or waited for its turn. The same goes for a lease that ended so
//! long ago.

use std::time::Duration;

use super::settle_each;
use crate::StoreError;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::writer::Writer;

pub(super) async fn fail_held(
    writer: &Writer,
    retention: Duration,
    limit: u32,
) -> Result<u64, StoreError> {
    writer
        .run("maintenance::fail_held", move |tx| {
            Box::pin(async move {
                let now = tx.now();
                let found = sqlx::query_as(
                    "-- sqlite::maintenance::fail_held
                    SELECT d.endpoint, d.id
                    FROM endpoint_schedule s
                    CROSS JOIN deliveries d ON d.endpoint = s.endpoint
                    WHERE NOT s.deleted AND (NOT s.enabled OR s.paused_until > ?2)
                        AND (d.state = 1 AND d.due_at <= ?3
                            OR d.state = 2 AND d.claim_expires_at <= ?3
                                AND d.cancel_requested_at IS NULL)
                    LIMIT ?1",
                )
                .bind(limit)
                .bind(UnixMicros(now))
                .bind(UnixMicros(now - retention))
                .fetch_all(tx.connection())
                .await?;
                settle_each(tx, found, |delivery| delivery.give_up_held(retention, now)).await
            })
        })
        .await
}
