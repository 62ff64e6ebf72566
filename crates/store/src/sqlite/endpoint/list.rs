//! The live endpoints of an application, newest first.

use domain::id::ApplicationKey;
use sqlx::SqlitePool;

use crate::endpoint::Endpoint;
use crate::sqlite::codec::{EndpointRow, upper_bound};
use crate::sqlite::errors::store_error;
use crate::{Page, StoreError};

pub(in crate::sqlite) async fn list(
    readers: &SqlitePool,
    application: ApplicationKey,
    page: Page,
) -> Result<Vec<Endpoint>, StoreError> {
    let rows: Vec<EndpointRow> = sqlx::query_as(
        "-- sqlite::endpoint::list
        SELECT key, application, id, url, name, disabled_cause, version, deadline_ms,
            connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
            in_flight_max, ingest_rate, ingest_rate_ms, public_ingest, created_at
        FROM endpoints
        WHERE application = ?1 AND deleted_at IS NULL AND key < ?2
        ORDER BY key DESC
        LIMIT ?3",
    )
    .bind(application.as_uuid())
    .bind(upper_bound(page.before))
    .bind(page.limit)
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("endpoint::list", error))?;
    rows.into_iter().map(Endpoint::try_from).collect()
}
