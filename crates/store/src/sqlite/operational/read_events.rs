//! The oldest events that are not submitted yet.

use sqlx::{FromRow, SqlitePool};
use uuid::Uuid;

use crate::StoreError;
use crate::operational::{EventColumns, StoredEvent};
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::store_error;

#[derive(FromRow)]
struct EventRow {
    id: Uuid,
    about: Uuid,
    kind: i16,
    code: Option<i16>,
    delivery: Option<Uuid>,
    submission: Option<Uuid>,
    occurred_at: UnixMicros,
    application: String,
    endpoint: String,
}

impl From<EventRow> for EventColumns {
    fn from(row: EventRow) -> Self {
        Self {
            id: row.id,
            about: row.about,
            kind: row.kind,
            code: row.code,
            delivery: row.delivery,
            submission: row.submission,
            occurred_at: row.occurred_at.0,
            application: row.application,
            endpoint: row.endpoint,
        }
    }
}

pub(super) async fn read_events(
    readers: &SqlitePool,
    limit: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    let rows: Vec<EventRow> = sqlx::query_as(
        "-- sqlite::operational::read_events
        SELECT v.id, v.endpoint AS about, v.kind, v.code, v.delivery, v.submission, v.occurred_at,
            a.id AS application, e.id AS endpoint
        FROM operational_events v
        JOIN endpoints e ON e.key = v.endpoint
        JOIN applications a ON a.key = e.application
        ORDER BY v.occurred_at, v.id
        LIMIT ?1",
    )
    .bind(limit)
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("operational::read_events", error))?;
    rows.into_iter().map(|row| EventColumns::from(row).stored()).collect()
}
