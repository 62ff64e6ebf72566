//! The live endpoints of an application, newest first.

use domain::id::ApplicationKey;
use uuid::Uuid;

use crate::endpoint::Endpoint;
use crate::postgres::codec::EndpointRow;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::sealing::Sealer;
use crate::{Page, StoreError};

pub(in crate::postgres) async fn list(
    pool: &Pool,
    sealer: &Sealer,
    application: ApplicationKey,
    page: Page,
) -> Result<Vec<Endpoint>, StoreError> {
    let rows = sqlx::query_as!(
        EndpointRow,
        "-- postgres::endpoint::list
        SELECT e.key, e.application, e.id, e.url, e.name, e.event_types, e.headers_sealed,
            e.headers_sealing_key, e.disabled_cause, e.version, e.deadline_ms,
            e.connect_deadline_ms, e.retry_schedule_ms, e.overload_floor_ms, e.final_statuses,
            e.in_flight_max, e.delivery_rate, e.delivery_rate_ms, e.ingest_rate, e.ingest_rate_ms,
            e.signing, e.public_ingest, e.circuit_breaker, e.only_networks, e.ca_certificates, e.created_at,
            e.updated_at,
            (SELECT s.paused_until FROM fencepost.endpoint_schedule s
                WHERE s.endpoint = e.key AND s.paused_until > statement_timestamp()) AS paused_until
        FROM fencepost.endpoints e
        WHERE e.application = $1 AND e.deleted_at IS NULL AND e.key < $2
        ORDER BY e.key DESC
        LIMIT $3",
        application.as_uuid(),
        page.before.unwrap_or(Uuid::max()),
        i64::from(page.limit),
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("endpoint::list", error))?;
    rows.into_iter().map(|row| row.endpoint(sealer)).collect()
}
