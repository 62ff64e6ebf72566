//! The oldest events that are not submitted yet.

use domain::id::EndpointKey;

use crate::StoreError;
use crate::operational::{EventColumns, StoredEvent};
use crate::postgres::codec::corrupt;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn read_events(pool: &Pool, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
    let rows = sqlx::query!(
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
    rows.into_iter()
        .map(|row| {
            let columns = EventColumns {
                kind: row.kind,
                code: row.code,
                delivery: row.delivery,
                submission: row.submission,
                occurred_at: row.occurred_at,
                application: row.application,
                endpoint: row.endpoint,
            };
            let event = columns.event();
            let event = event.ok_or_else(|| corrupt("operational_events", "kind", row.id))?;
            Ok(StoredEvent { id: row.id, about: EndpointKey::from_uuid(row.about), event })
        })
        .collect()
}
