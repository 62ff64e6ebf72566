//! The live endpoints with some ids, each in its application.

use std::collections::HashMap;

use domain::id::{ApplicationKey, PublicId};

use crate::StoreError;
use crate::endpoint::Endpoint;
use crate::postgres::codec::EndpointRow;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::sealing::Sealer;

/// In the order of the ids.
pub(in crate::postgres) async fn find(
    pool: &Pool,
    sealer: &Sealer,
    ids: &[(ApplicationKey, PublicId)],
) -> Result<Vec<Option<Endpoint>>, StoreError> {
    let applications: Vec<_> = ids.iter().map(|(application, _)| application.as_uuid()).collect();
    let names: Vec<String> = ids.iter().map(|(_, id)| id.as_str().to_owned()).collect();
    let rows = sqlx::query_as!(
        EndpointRow,
        "-- postgres::endpoint::find
        SELECT e.key, e.application, e.id, e.url, e.name, e.event_types, e.headers_sealed,
            e.headers_sealing_key, e.disabled_cause, e.version, e.deadline_ms,
            e.connect_deadline_ms, e.retry_schedule_ms, e.overload_floor_ms, e.final_statuses,
            e.in_flight_max, e.delivery_rate, e.delivery_rate_ms, e.ingest_rate, e.ingest_rate_ms,
            e.signing, e.public_ingest, e.circuit_breaker, e.only_networks, e.ca_certificates, e.created_at,
            e.updated_at,
            (SELECT s.paused_until FROM fencepost.endpoint_schedule s
                WHERE s.endpoint = e.key AND s.paused_until > statement_timestamp()) AS paused_until
        FROM unnest($1::uuid[], $2::text[]) AS r(application, id)
        JOIN fencepost.endpoints e ON e.application = r.application AND e.id = r.id
        WHERE e.deleted_at IS NULL",
        &applications,
        &names,
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("endpoint::find", error))?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in rows {
        let endpoint = row.endpoint(sealer)?;
        found.insert((endpoint.application, endpoint.id.clone()), endpoint);
    }
    Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
}

/// One of them.
pub(in crate::postgres) async fn find_one(
    pool: &Pool,
    sealer: &Sealer,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<Endpoint>, StoreError> {
    Ok(find(pool, sealer, &[(application, id.clone())]).await?.pop().flatten())
}
