//! The live endpoint of an application with an id.

use domain::id::{ApplicationKey, PublicId};
use sqlx::SqlitePool;

use crate::StoreError;
use crate::endpoint::Endpoint;
use crate::sqlite::codec::EndpointRow;
use crate::sqlite::errors::store_error;

pub(in crate::sqlite) async fn find(
    readers: &SqlitePool,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<Endpoint>, StoreError> {
    let row: Option<EndpointRow> = sqlx::query_as(
        "-- sqlite::endpoint::find
        SELECT key, application, id, url, name, disabled_cause, version, deadline_ms,
            connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
            in_flight_max, ingest_rate, ingest_rate_ms, public_ingest, created_at
        FROM endpoints
        WHERE application = ?1 AND id = ?2 AND deleted_at IS NULL",
    )
    .bind(application.as_uuid())
    .bind(id.as_str())
    .fetch_optional(readers)
    .await
    .map_err(|error| store_error("endpoint::find", error))?;
    row.map(Endpoint::try_from).transpose()
}
