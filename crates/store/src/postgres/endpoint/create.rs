//! Creates an endpoint together with its schedule row and its sealed secrets.
//!
//! An endpoint without a schedule row would never be claimed, silently: one statement writes both.

use domain::delivery::lease::lease_for;
use domain::endpoint::{EndpointName, EventPatterns};

use crate::endpoint::{EndpointCreation, NewEndpoint};
use crate::postgres::codec::{EndpointRow, SettingsColumns, millis_i32};
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::sealing::Sealer;
use crate::secret::seal_new;
use crate::{StoreError, codes, sealed_headers};

pub(in crate::postgres) async fn create(
    pool: &Pool,
    sealer: &Sealer,
    new: &NewEndpoint,
) -> Result<EndpointCreation, StoreError> {
    let settings = SettingsColumns::from(&new.settings);
    let [v1, v1a] = seal_new(sealer, new.key, &new.secret, &new.ed25519)?;
    let headers = sealed_headers::seal(sealer, new.key, &new.headers)?;
    let row = sqlx::query_as!(
        EndpointRow,
        "-- postgres::endpoint::create
        WITH e AS (
            INSERT INTO fencepost.endpoints (
                key, application, id, url, name, event_types, headers_sealed, headers_sealing_key,
                deadline_ms, connect_deadline_ms, retry_schedule_ms, overload_floor_ms,
                final_statuses, in_flight_max, delivery_rate, delivery_rate_ms, ingest_rate,
                ingest_rate_ms, signing, public_ingest, circuit_breaker, only_networks, ca_certificates,
                disabled_cause, disabled_at
            )
            VALUES (
                $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                $19, $20, $29, $27, $28, $30,
                CASE WHEN $30::smallint IS NOT NULL THEN statement_timestamp() END
            )
            ON CONFLICT (application, id) DO NOTHING
            RETURNING key, application, id, url, name, event_types, headers_sealed,
                headers_sealing_key, disabled_cause, version, deadline_ms,
                connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
                in_flight_max, delivery_rate, delivery_rate_ms, ingest_rate, ingest_rate_ms,
                signing, public_ingest, circuit_breaker, only_networks, ca_certificates, created_at,
                updated_at
        ), h AS MATERIALIZED (
            SELECT held FROM fencepost.holds FOR SHARE
        ), s AS (
            INSERT INTO fencepost.endpoint_schedule (
                endpoint, cap, lease_ms, rate_limit, rate_window_ms, circuit_breaker, enabled, held
            )
            SELECT key, $14, $21, $15, $16, $29, disabled_cause IS NULL, (SELECT held FROM h) FROM e
        ), x AS (
            INSERT INTO fencepost.endpoint_secrets (id, endpoint, kind, sealed, sealing_key)
            SELECT n.id, e.key, n.kind, n.sealed, $22
            FROM e CROSS JOIN (
                VALUES ($23::uuid, 1::smallint, $24::bytea), ($25, 2, $26)
            ) AS n (id, kind, sealed)
        )
        SELECT key, application, id, url, name, event_types, headers_sealed,
            headers_sealing_key, disabled_cause, version, deadline_ms,
            connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
            in_flight_max, delivery_rate, delivery_rate_ms, ingest_rate, ingest_rate_ms,
            signing, public_ingest, circuit_breaker, only_networks, ca_certificates, created_at,
            updated_at,
            NULL::timestamptz AS paused_until
        FROM e",
        new.key.as_uuid(),
        new.application.as_uuid(),
        new.id.as_str(),
        new.url.as_str(),
        new.name.as_ref().map(EndpointName::as_str),
        new.event_types.as_ref().map(EventPatterns::as_slice),
        headers.as_ref().map(|headers| headers.bytes.as_slice()),
        headers.as_ref().map(|headers| headers.key_id.as_str()),
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
        millis_i32(lease_for(new.settings.deadline())),
        v1.sealed.key_id,
        v1.id,
        v1.sealed.bytes,
        v1a.id,
        v1a.sealed.bytes,
        settings.only_networks.as_deref(),
        settings.ca_certificates,
        settings.circuit_breaker,
        new.disabled().map(codes::of_disabled_cause),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("endpoint::create", error))?;
    match row {
        Some(row) => row.endpoint(sealer).map(EndpointCreation::Created),
        None => Ok(EndpointCreation::IdTaken),
    }
}
