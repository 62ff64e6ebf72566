//! What a worker needs to send to some endpoints, read after the claim.
//!
//! One statement reads URL, live secrets and version, so that they belong together.

use domain::id::{EndpointKey, PublicId};
use sqlx::{FromRow, SqlitePool};
use uuid::Uuid;

use crate::endpoint::Target;
use crate::sealing::{Sealed, Sealer};
use crate::secret::StoredSecret;
use crate::sqlite::codec::{SettingsColumns, corrupt, json_of_uuids};
use crate::sqlite::errors::store_error;
use crate::{StoreError, sealed_headers};

/// An endpoint with one of its secrets, if it has any. Rows of one endpoint follow one another.
#[derive(FromRow)]
struct Row {
    key: Uuid,
    id: String,
    url: String,
    version: i64,
    #[sqlx(flatten)]
    settings: SettingsColumns,
    headers_sealed: Option<Vec<u8>>,
    headers_sealing_key: Option<String>,
    secret: Option<Uuid>,
    kind: Option<i16>,
    sealed: Option<Vec<u8>>,
    sealing_key: Option<String>,
}

/// Secrets stand with the newest first. The clock has milliseconds, and ids are made before the write lock
/// is had: of two of one instant the row that was inserted later is the newer.
pub(in crate::sqlite) async fn read_targets(
    readers: &SqlitePool,
    sealer: &Sealer,
    endpoints: &[EndpointKey],
) -> Result<Vec<Target>, StoreError> {
    let rows: Vec<Row> = sqlx::query_as(
        "-- sqlite::endpoint::read_targets
        SELECT e.key, e.id, e.url, e.version, e.deadline_ms, e.connect_deadline_ms,
            e.retry_schedule_ms, e.overload_floor_ms, e.final_statuses, e.in_flight_max,
            e.delivery_rate, e.delivery_rate_ms, e.ingest_rate, e.ingest_rate_ms, e.signing,
            e.public_ingest, e.circuit_breaker, e.only_networks, e.ca_certificates, e.headers_sealed,
            e.headers_sealing_key,
            s.id AS secret, s.kind, s.sealed, s.sealing_key
        FROM endpoints e
        LEFT JOIN endpoint_secrets s ON s.endpoint = e.key AND (s.kind & e.signing) <> 0
            AND (s.retires_at IS NULL
                OR s.retires_at > CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000)
        WHERE e.key IN (SELECT unhex(value, '-') FROM json_each(?1)) AND e.deleted_at IS NULL
        ORDER BY e.key, s.created_at DESC, s.kind, s.rowid DESC",
    )
    .bind(json_of_uuids(endpoints.iter().map(|endpoint| endpoint.as_uuid())))
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("endpoint::read_targets", error))?;

    let mut targets: Vec<Target> = Vec::new();
    for row in rows {
        let endpoint = EndpointKey::from_uuid(row.key);
        let secret = match (row.secret, row.kind, row.sealed, row.sealing_key) {
            (Some(id), Some(kind), Some(bytes), Some(key_id)) => {
                let sealed = Sealed { key_id, bytes };
                Some(StoredSecret { id, kind, sealed }.open(sealer, endpoint))
            }
            _ => None,
        };
        let mut target = match targets.pop_if(|last| last.endpoint == endpoint) {
            Some(target) => target,
            None => Target {
                endpoint,
                id: PublicId::parse(&row.id).map_err(|_| corrupt("endpoints", "id", row.key))?,
                url: row.url,
                settings: row.settings.settings(row.key)?,
                version: row.version,
                secrets: Ok(Vec::new()),
                headers: sealed_headers::open(
                    sealer,
                    endpoint,
                    row.headers_sealed,
                    row.headers_sealing_key,
                ),
            },
        };
        // The first secret that cannot be used is the answer: the others are not used without it.
        target.secrets = target.secrets.and_then(|mut secrets| {
            secrets.extend(secret.transpose()?);
            Ok(secrets)
        });
        targets.push(target);
    }
    Ok(targets)
}
