//! The live endpoint of an application with an id.

use domain::id::{ApplicationKey, PublicId};
use sqlx::PgPool;

use crate::StoreError;
use crate::endpoint::Endpoint;
use crate::postgres::codec::EndpointRow;
use crate::postgres::errors::store_error;

pub(in crate::postgres) async fn find(
    pool: &PgPool,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<Endpoint>, StoreError> {
    let row = sqlx::query_as!(
        EndpointRow,
        "-- postgres::endpoint::find
        SELECT key, application, id, url, name, disabled_cause, version, deadline_ms,
            connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
            in_flight_max, ingest_rate, ingest_rate_ms, public_ingest, created_at
        FROM fencepost.endpoints
        WHERE application = $1 AND id = $2 AND deleted_at IS NULL",
        application.as_uuid(),
        id.as_str(),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("endpoint::find", error))?;
    row.map(Endpoint::try_from).transpose()
}
