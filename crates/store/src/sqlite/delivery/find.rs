//! A delivery of an application, live or settled.

use domain::id::{ApplicationKey, DeliveryId};
use sqlx::SqlitePool;

use crate::StoreError;
use crate::delivery::DeliveryView;
use crate::sqlite::codec::DeliveryViewRow;
use crate::sqlite::errors::store_error;

pub(in crate::sqlite) async fn find(
    readers: &SqlitePool,
    application: ApplicationKey,
    id: DeliveryId,
) -> Result<Option<DeliveryView>, StoreError> {
    let row: Option<DeliveryViewRow> = sqlx::query_as(
        "-- sqlite::delivery::find
        SELECT d.id, d.endpoint, e.id AS endpoint_id, d.submission, d.state, d.reason, d.attempts,
            d.cycle_attempts, d.lapses, d.due_at, d.claim_expires_at, d.claimed_by,
            d.cancel_requested_at IS NOT NULL AS cancel_requested, NULL AS settled_at
        FROM deliveries d
        CROSS JOIN endpoints e ON e.key = d.endpoint
        WHERE d.id = ?2 AND e.application = ?1
        UNION ALL
        SELECT d.id, d.endpoint, e.id, d.submission, d.state, d.reason, d.attempts,
            d.cycle_attempts, 0, NULL, NULL, d.claimed_by, 0, d.settled_at
        FROM settled_deliveries d
        CROSS JOIN endpoints e ON e.key = d.endpoint
        WHERE d.id = ?2 AND e.application = ?1",
    )
    .bind(application.as_uuid())
    .bind(id.as_uuid())
    .fetch_optional(readers)
    .await
    .map_err(|error| store_error("delivery::find", error))?;
    row.map(DeliveryView::try_from).transpose()
}
