//! Deliveries of an application, live and settled, newest first.
//!
//! The newest of each endpoint are taken from its primary keys and merged, so that the size of
//! other applications does not matter. `CROSS JOIN` keeps the tables in this order.

use domain::id::EndpointKey;
use sqlx::SqlitePool;

use crate::delivery::{DeliveryFilter, DeliveryView};
use crate::sqlite::codec::DeliveryViewRow;
use crate::sqlite::errors::store_error;
use crate::{StoreError, codes};

pub(in crate::sqlite) async fn list(
    readers: &SqlitePool,
    filter: DeliveryFilter,
) -> Result<Vec<DeliveryView>, StoreError> {
    let rows: Vec<DeliveryViewRow> = sqlx::query_as(
        "-- sqlite::delivery::list
        SELECT d.id AS id, d.endpoint, e.id AS endpoint_id, d.submission, d.state, d.reason,
            d.attempts, d.cycle_attempts, d.lapses, d.due_at, d.claim_expires_at, d.claimed_by,
            d.cancel_requested_at IS NOT NULL AS cancel_requested, NULL AS settled_at
        FROM endpoints e
        CROSS JOIN deliveries d ON d.endpoint = e.key AND d.id IN (
            SELECT q.id
            FROM deliveries q
            WHERE q.endpoint = e.key AND q.id >= ?6 AND q.id < ?4
                AND (?3 IS NULL OR q.state = ?3)
            ORDER BY q.id DESC
            LIMIT ?5
        )
        WHERE e.application = ?1 AND (?2 IS NULL OR e.key = ?2)
        UNION ALL
        SELECT d.id, d.endpoint, e.id, d.submission, d.state, d.reason,
            d.attempts, d.cycle_attempts, 0, NULL, NULL, d.claimed_by, 0, d.settled_at
        FROM endpoints e
        CROSS JOIN settled_deliveries d ON d.endpoint = e.key AND d.id IN (
            SELECT q.id
            FROM settled_deliveries q
            WHERE q.endpoint = e.key AND q.id >= ?6 AND q.id < ?4
                AND (?3 IS NULL OR q.state = ?3)
            ORDER BY q.id DESC
            LIMIT ?5
        )
        WHERE e.application = ?1 AND (?2 IS NULL OR e.key = ?2)
        ORDER BY id DESC
        LIMIT ?5",
    )
    .bind(filter.application.as_uuid())
    .bind(filter.endpoint.map(EndpointKey::as_uuid))
    .bind(filter.state.map(codes::of_state))
    .bind(filter.created.below(filter.page))
    .bind(filter.page.limit)
    .bind(filter.created.lowest())
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("delivery::list", error))?;
    rows.into_iter().map(DeliveryView::try_from).collect()
}
