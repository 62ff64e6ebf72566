//! The live endpoint of an application with an id.

use domain::id::{ApplicationKey, PublicId};

use crate::StoreError;
use crate::endpoint::Endpoint;
use crate::postgres::codec::EndpointRow;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::sealing::Sealer;

pub(in crate::postgres) async fn find(
    pool: &Pool,
    sealer: &Sealer,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<Endpoint>, StoreError> {
    let row = sqlx::query_as!(
        EndpointRow,
        "-- postgres::endpoint::find
        SELECT e.key, e.application, e.id, e.url, e.name, e.event_types, e.headers_sealed,
            e.headers_sealing_key, e.disabled_cause, e.version, e.deadline_ms,
            e.connect_deadline_ms, e.retry_schedule_ms, e.overload_floor_ms, e.final_statuses,
            e.in_flight_max, e.delivery_rate, e.delivery_rate_ms, e.ingest_rate, e.ingest_rate_ms,
            e.signing, e.public_ingest, e.created_at, e.updated_at,
            (SELECT s.paused_until FROM fencepost.endpoint_schedule s
                WHERE s.endpoint = e.key AND s.paused_until > statement_timestamp()) AS paused_until
        FROM fencepost.endpoints e
        WHERE e.application = $1 AND e.id = $2 AND e.deleted_at IS NULL",
        application.as_uuid(),
        id.as_str(),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("endpoint::find", error))?;
    row.map(|row| row.endpoint(sealer)).transpose()
}
