//! The live endpoints with some ids, each in its application.

use domain::id::{ApplicationKey, PublicId};
use sqlx::{SqliteExecutor, SqlitePool};

use crate::StoreError;
use crate::endpoint::Endpoint;
use crate::sealing::Sealer;
use crate::sqlite::codec::EndpointRow;
use crate::sqlite::errors::store_error;

/// In the order of the ids.
pub(in crate::sqlite) async fn find(
    readers: &SqlitePool,
    sealer: &Sealer,
    ids: &[(ApplicationKey, PublicId)],
) -> Result<Vec<Option<Endpoint>>, StoreError> {
    let mut found = Vec::with_capacity(ids.len());
    for (application, id) in ids {
        let row = find_row(readers, *application, id).await;
        let row = row.map_err(|error| store_error("endpoint::find", error))?;
        found.push(row.map(|row| row.endpoint(sealer)).transpose()?);
    }
    Ok(found)
}

/// One of them, also inside a transaction.
pub(super) async fn find_row<'c>(
    executor: impl SqliteExecutor<'c>,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<EndpointRow>, sqlx::Error> {
    sqlx::query_as(
        "-- sqlite::endpoint::find::find_row
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
        WHERE e.application = ?1 AND e.id = ?2 AND e.deleted_at IS NULL",
    )
    .bind(application.as_uuid())
    .bind(id.as_str())
    .fetch_optional(executor)
    .await
}
