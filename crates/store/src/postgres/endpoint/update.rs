//! Changes an endpoint if its configuration is still of the version that the change was made for (G7).
//!
//! One statement writes endpoint, schedule row and secrets, in this order of locks, and answers what it
//! wrote. The condition on the version is what makes it whole: an endpoint that somebody else changed
//! since it was read is left alone, so no secret that stands beside this version is overlooked when a
//! new one ends them all. Whatever changes live secrets raises the version.

use domain::delivery::lease::lease_for;
use domain::id::{ApplicationKey, EndpointKey, PublicId};

use crate::postgres::pool::Pool;

use super::find::find_one;
use crate::endpoint::{Changed, Endpoint, EndpointChange, EndpointUpdate, secret_row};
use crate::postgres::codec::{EndpointRow, SettingsColumns, millis_i32};
use crate::postgres::errors::store_error;
use crate::postgres::retry::after_conflict;
use crate::sealing::{Sealed, Sealer};
use crate::{StoreError, codes, sealed_headers};

/// How often an endpoint is read again that somebody else has changed meanwhile. Each time one of
/// them was served.
const TRIES: u32 = 50;

/// What is written of the headers: nothing, or what they are now.
type NewHeaders = Option<Option<Sealed>>;

pub(in crate::postgres) async fn update(
    pool: &Pool,
    sealer: &Sealer,
    application: ApplicationKey,
    id: &PublicId,
    change: &EndpointChange,
) -> Result<EndpointUpdate, StoreError> {
    for _ in 0..TRIES {
        let Some(old) = find_one(pool, sealer, application, id).await? else {
            return Ok(EndpointUpdate::Missing);
        };
        let changed = match change.apply(&old) {
            Ok(_) if change.is_empty() => {
                return Ok(EndpointUpdate::Updated { endpoint: old, minted: false });
            }
            Ok(changed) => changed,
            Err(error) => return Ok(EndpointUpdate::Invalid(error)),
        };
        let headers = match &change.headers {
            Some(headers) => Some(sealed_headers::seal(sealer, old.key, headers)?),
            None => None,
        };
        let version = (old.key, old.version);
        if let Some(endpoint) = write(pool, sealer, version, &changed, &headers).await? {
            let minted = changed.minted.is_some();
            return Ok(EndpointUpdate::Updated { endpoint, minted });
        }
    }
    let source = "others changed the endpoint each time before this could".into();
    Err(StoreError::Contended { operation: "endpoint::update", source })
}

/// Answers none if the endpoint is of another version by now.
#[expect(clippy::too_many_lines, reason = "it is one statement")]
async fn write(
    pool: &Pool,
    sealer: &Sealer,
    (key, version): (EndpointKey, i64),
    changed: &Changed,
    headers: &NewHeaders,
) -> Result<Option<Endpoint>, StoreError> {
    let settings = SettingsColumns::from(&changed.settings);
    let lease = lease_for(changed.settings.deadline());
    let secret_id = crate::new_id::uuid_now();
    let sealed = match &changed.minted {
        None => None,
        Some(secret) => Some(
            sealer.seal(secret.expose_bytes(), &secret_row(key, secret_id)).map_err(|source| {
                let (secret, endpoint) = (secret_id.to_string(), key.to_string());
                StoreError::Sealed { secret, endpoint, source }
            })?,
        ),
    };
    let kept_headers = headers.as_ref().and_then(Option::as_ref);
    let row = after_conflict(|| async {
        sqlx::query_as!(
            EndpointRow,
            "-- postgres::endpoint::update::write
            WITH e AS (
                UPDATE fencepost.endpoints SET
                    url = $3, name = $4, event_types = $5,
                    headers_sealed = CASE WHEN $6 THEN $7 ELSE headers_sealed END,
                    headers_sealing_key = CASE WHEN $6 THEN $8 ELSE headers_sealing_key END,
                    disabled_cause = $9,
                    disabled_at = CASE WHEN $9::smallint IS NULL THEN NULL
                        WHEN disabled_cause IS NULL THEN statement_timestamp()
                        ELSE disabled_at END,
                    deadline_ms = $10, connect_deadline_ms = $11,
                    retry_schedule_ms = $12, overload_floor_ms = $13, final_statuses = $14,
                    in_flight_max = $15, delivery_rate = $16, delivery_rate_ms = $17,
                    ingest_rate = $18, ingest_rate_ms = $19, signing = $20, public_ingest = $21,
                    only_networks = $26, ca_certificates = $27,
                    circuit_breaker = $29,
                    version = version + 1, updated_at = statement_timestamp()
                WHERE key = $1 AND version = $2 AND deleted_at IS NULL
                RETURNING key, application, id, url, name, event_types, headers_sealed,
                    headers_sealing_key, disabled_cause, version, deadline_ms,
                    connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
                    in_flight_max, delivery_rate, delivery_rate_ms, ingest_rate, ingest_rate_ms,
                    signing, public_ingest, circuit_breaker, only_networks, ca_certificates, created_at,
                    updated_at
            ), s AS (
                UPDATE fencepost.endpoint_schedule s SET
                    cap = e.in_flight_max, lease_ms = $22, enabled = e.disabled_cause IS NULL,
                    rate_limit = e.delivery_rate, rate_window_ms = e.delivery_rate_ms,
                    counts_from = CASE WHEN $28 THEN e.version ELSE s.counts_from END,
                    failing_since = CASE WHEN NOT $28 THEN s.failing_since END,
                    failed_at = CASE WHEN NOT $28 THEN s.failed_at END,
                    circuit_breaker = e.circuit_breaker,
                    failures_in_a_row = CASE WHEN $30 THEN 0 ELSE s.failures_in_a_row END,
                    window_since = CASE WHEN NOT $30 THEN s.window_since END,
                    window_succeeded = CASE WHEN $30 THEN 0 ELSE s.window_succeeded END,
                    window_failed = CASE WHEN $30 THEN 0 ELSE s.window_failed END,
                    circuit_times = CASE WHEN $30 THEN 0 ELSE s.circuit_times END,
                    circuit_since = CASE WHEN NOT $30 THEN s.circuit_since END,
                    circuit_until = CASE WHEN NOT $30 THEN s.circuit_until END,
                    circuit_cause = CASE WHEN NOT $30 THEN s.circuit_cause END,
                    circuit_probe = CASE WHEN NOT $30 THEN s.circuit_probe END
                FROM e
                WHERE s.endpoint = e.key
                RETURNING s.paused_until
            ), ended AS (
                UPDATE fencepost.endpoint_secrets x SET retires_at = statement_timestamp()
                FROM e
                WHERE x.endpoint = e.key AND x.kind = 1 AND $24::bytea IS NOT NULL
                    AND (x.retires_at IS NULL OR x.retires_at > statement_timestamp())
            ), minted AS (
                INSERT INTO fencepost.endpoint_secrets (id, endpoint, sealed, sealing_key)
                SELECT $23, key, $24, $25 FROM e WHERE $24::bytea IS NOT NULL
            ), told AS (
                INSERT INTO fencepost.operational_events (kind, code, endpoint)
                SELECT v.kind, v.code, e.key
                FROM e JOIN fencepost.operational_endpoint o ON o.endpoint <> e.key
                CROSS JOIN (
                    VALUES (1::smallint, $9::smallint, $31::boolean),
                        (5, NULL, $24::bytea IS NOT NULL)
                ) AS v (kind, code, happened)
                WHERE v.happened
            )
            SELECT key, application, id, url, name, event_types, headers_sealed,
                headers_sealing_key, disabled_cause, version, deadline_ms,
                connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
                in_flight_max, delivery_rate, delivery_rate_ms, ingest_rate, ingest_rate_ms,
                signing, public_ingest, circuit_breaker, only_networks, ca_certificates, created_at,
                updated_at,
                (SELECT s.paused_until FROM s WHERE s.paused_until > statement_timestamp())
                    AS paused_until
            FROM e",
            key.as_uuid(),
            version,
            changed.url,
            changed.name.as_deref(),
            changed.event_types.as_deref(),
            headers.is_some(),
            kept_headers.map(|headers| headers.bytes.as_slice()),
            kept_headers.map(|headers| headers.key_id.as_str()),
            changed.disabled.map(codes::of_disabled_cause),
            settings.deadline_ms,
            settings.connect_deadline_ms,
            &settings.retry_schedule_ms,
            settings.overload_floor_ms,
            &settings.final_statuses,
            settings.in_flight_max,
            settings.delivery_rate,
            settings.delivery_rate_ms,
            settings.ingest_rate,
            settings.ingest_rate_ms,
            settings.signing,
            settings.public_ingest,
            millis_i32(lease),
            secret_id,
            sealed.as_ref().map(|sealed| sealed.bytes.as_slice()),
            sealed.as_ref().map(|sealed| sealed.key_id.as_str()),
            settings.only_networks.as_deref(),
            settings.ca_certificates,
            changed.begins_anew,
            settings.circuit_breaker,
            changed.begins_anew || !settings.circuit_breaker,
            changed.newly_disabled,
        )
        .fetch_optional(pool)
        .await
    })
    .await
    .map_err(|error| store_error("endpoint::update", error))?;
    row.map(|row| row.endpoint(sealer)).transpose()
}
