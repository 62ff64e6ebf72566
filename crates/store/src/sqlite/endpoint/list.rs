//! The live endpoints of an application, newest first.

use domain::id::ApplicationKey;
use sqlx::SqlitePool;

use crate::endpoint::Endpoint;
use crate::sealing::Sealer;
use crate::sqlite::codec::{EndpointRow, upper_bound};
use crate::sqlite::errors::store_error;
use crate::{Page, StoreError};

pub(in crate::sqlite) async fn list(
    readers: &SqlitePool,
    sealer: &Sealer,
    application: ApplicationKey,
    page: Page,
) -> Result<Vec<Endpoint>, StoreError> {
    let rows: Vec<EndpointRow> = sqlx::query_as(
        "-- sqlite::endpoint::list
        SELECT e.key, e.application, e.id, e.url, e.name, e.event_types, e.headers_sealed,
            e.headers_sealing_key, e.disabled_cause, e.version, e.deadline_ms,
            e.connect_deadline_ms, e.retry_schedule_ms, e.overload_floor_ms, e.final_statuses,
            e.in_flight_max, e.delivery_rate, e.delivery_rate_ms, e.ingest_rate, e.ingest_rate_ms,
            e.signing, e.public_ingest, e.circuit_breaker, e.only_networks, e.ca_certificates, e.created_at,
            e.updated_at,
            (SELECT s.paused_until FROM endpoint_schedule s
                WHERE s.endpoint = e.key AND s.paused_until
                    > CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000) AS paused_until
        FROM endpoints e
        WHERE e.application = ?1 AND e.deleted_at IS NULL AND e.key < ?2
        ORDER BY e.key DESC
        LIMIT ?3",
    )
    .bind(application.as_uuid())
    .bind(upper_bound(page.before))
    .bind(page.limit)
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("endpoint::list", error))?;
    rows.into_iter().map(|row| row.endpoint(sealer)).collect()
}
