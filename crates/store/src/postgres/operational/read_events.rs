//! The oldest events that are not submitted yet.

use crate::StoreError;
use crate::operational::{EventColumns, StoredEvent};
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn read_events(pool: &Pool, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
    let rows = sqlx::query_as!(
        EventColumns,
        "-- postgres::operational::read_events
        SELECT v.id, v.endpoint AS about, v.kind, v.code, v.delivery, v.submission, v.occurred_at,
            a.id AS application, e.id AS endpoint
        FROM fencepost.operational_events v
        JOIN fencepost.endpoints e ON e.key = v.endpoint
        JOIN fencepost.applications a ON a.key = e.application
        ORDER BY v.occurred_at, v.id
        LIMIT $1",
        i64::from(limit),
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("operational::read_events", error))?;
    rows.into_iter().map(EventColumns::stored).collect()
}
