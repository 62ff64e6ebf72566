//! The live endpoints of an application, newest first.

use domain::id::ApplicationKey;
use sqlx::PgPool;

use crate::endpoint::Endpoint;
use crate::postgres::codec::EndpointRow;
use crate::postgres::errors::store_error;
use crate::{Page, StoreError};

pub(in crate::postgres) async fn list(
    pool: &PgPool,
    application: ApplicationKey,
    page: Page,
) -> Result<Vec<Endpoint>, StoreError> {
    let rows = sqlx::query_as!(
        EndpointRow,
        "-- postgres::endpoint::list
        SELECT key, application, id, url, name, disabled_cause, version, deadline_ms,
            connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
            in_flight_max, ingest_rate, ingest_rate_ms, public_ingest, created_at
        FROM fencepost.endpoints
        WHERE application = $1 AND deleted_at IS NULL AND ($2::uuid IS NULL OR key < $2)
        ORDER BY key DESC
        LIMIT $3",
        application.as_uuid(),
        page.before,
        i64::from(page.limit),
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("endpoint::list", error))?;
    rows.into_iter().map(Endpoint::try_from).collect()
}
