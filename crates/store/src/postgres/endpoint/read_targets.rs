//! What a worker needs to send to some endpoints, read after the claim.
//!
//! One statement reads URL, live secrets and version, so that they belong together.

use domain::id::{EndpointKey, PublicId};
use uuid::Uuid;

use crate::endpoint::Target;
use crate::postgres::codec::{SettingsColumns, corrupt};
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::sealing::{Sealed, Sealer};
use crate::secret::StoredSecret;
use crate::{StoreError, sealed_headers};

pub(in crate::postgres) async fn read_targets(
    pool: &Pool,
    sealer: &Sealer,
    endpoints: &[EndpointKey],
) -> Result<Vec<Target>, StoreError> {
    let keys: Vec<Uuid> = endpoints.iter().map(|endpoint| endpoint.as_uuid()).collect();
    let rows = sqlx::query!(
        r#"-- postgres::endpoint::read_targets
        SELECT e.key, e.id, e.url, e.version, e.deadline_ms, e.connect_deadline_ms,
            e.retry_schedule_ms, e.overload_floor_ms, e.final_statuses, e.in_flight_max,
            e.delivery_rate, e.delivery_rate_ms, e.ingest_rate, e.ingest_rate_ms, e.signing,
            e.public_ingest, e.circuit_breaker, e.only_networks, e.ca_certificates, e.headers_sealed,
            e.headers_sealing_key,
            s.ids AS "secret_ids!", s.kinds AS "kinds!", s.sealed AS "sealed!",
            s.sealing_keys AS "sealing_keys!"
        FROM fencepost.endpoints e
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(x.id), '{}') AS ids, coalesce(array_agg(x.kind), '{}') AS kinds,
                coalesce(array_agg(x.sealed), '{}') AS sealed,
                coalesce(array_agg(x.sealing_key), '{}') AS sealing_keys
            FROM (
                SELECT y.id, y.kind, y.sealed, y.sealing_key
                FROM fencepost.endpoint_secrets y
                WHERE y.endpoint = e.key AND (y.kind & e.signing) <> 0
                    AND (y.retires_at IS NULL OR y.retires_at > statement_timestamp())
                ORDER BY y.created_at DESC, y.kind, y.id DESC
            ) x
        ) s
        WHERE e.key = ANY($1::uuid[]) AND e.deleted_at IS NULL"#,
        &keys,
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("endpoint::read_targets", error))?;
    rows.into_iter()
        .map(|row| {
            let endpoint = EndpointKey::from_uuid(row.key);
            let sealed = row.sealed.into_iter().zip(row.sealing_keys);
            let sealed = sealed.map(|(bytes, key_id)| Sealed { key_id, bytes });
            let secrets = row.secret_ids.into_iter().zip(row.kinds).zip(sealed);
            let secrets = secrets
                .map(|((id, kind), sealed)| {
                    StoredSecret { id, kind, sealed }.open(sealer, endpoint)
                })
                .collect::<Result<Vec<_>, _>>();
            let settings = SettingsColumns {
                deadline_ms: row.deadline_ms,
                connect_deadline_ms: row.connect_deadline_ms,
                retry_schedule_ms: row.retry_schedule_ms,
                overload_floor_ms: row.overload_floor_ms,
                final_statuses: row.final_statuses,
                in_flight_max: row.in_flight_max,
                delivery_rate: row.delivery_rate,
                delivery_rate_ms: row.delivery_rate_ms,
                ingest_rate: row.ingest_rate,
                ingest_rate_ms: row.ingest_rate_ms,
                signing: row.signing,
                public_ingest: row.public_ingest,
                only_networks: row.only_networks,
                ca_certificates: row.ca_certificates,
                circuit_breaker: row.circuit_breaker,
            };
            Ok(Target {
                endpoint,
                id: PublicId::parse(&row.id).map_err(|_| corrupt("endpoints", "id", row.key))?,
                url: row.url,
                settings: settings.settings(row.key)?,
                version: row.version,
                secrets,
                headers: sealed_headers::open(
                    sealer,
                    endpoint,
                    row.headers_sealed,
                    row.headers_sealing_key,
                ),
            })
        })
        .collect()
}
