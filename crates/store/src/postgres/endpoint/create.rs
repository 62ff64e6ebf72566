//! Creates an endpoint together with its schedule row and its sealed secret.
//!
//! An endpoint without a schedule row would never be claimed, silently: one statement writes both.

use domain::delivery::lease::lease_for;
use domain::endpoint::EndpointName;
use sqlx::PgPool;

use crate::StoreError;
use crate::endpoint::{Endpoint, EndpointCreation, NewEndpoint, secret_row};
use crate::postgres::codec::{EndpointRow, integer, millis, millis_i32};
use crate::postgres::errors::store_error;
use crate::sealing::Sealer;

pub(in crate::postgres) async fn create(
    pool: &PgPool,
    sealer: &Sealer,
    new: &NewEndpoint,
) -> Result<EndpointCreation, StoreError> {
    let settings = &new.settings;
    let secret_id = crate::new_id::uuid_now();
    let kept = sealer.seal(new.secret.expose_bytes(), &secret_row(new.key, secret_id)).map_err(
        |source| StoreError::Sealed {
            secret: secret_id.to_string(),
            endpoint: new.key.to_string(),
            source,
        },
    )?;
    let retry_schedule_ms: Vec<i64> =
        settings.retry_schedule().delays().iter().copied().map(millis).collect();
    let final_statuses: Vec<i16> =
        settings.final_statuses().iter().filter_map(|s| i16::try_from(*s).ok()).collect();
    let row = sqlx::query_as!(
        EndpointRow,
        "-- postgres::endpoint::create
        WITH e AS (
            INSERT INTO fencepost.endpoints (
                key, application, id, url, name, deadline_ms, connect_deadline_ms,
                retry_schedule_ms, overload_floor_ms, final_statuses, in_flight_max, ingest_rate,
                ingest_rate_ms, public_ingest
            )
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $16, $17, $18)
            ON CONFLICT (application, id) DO NOTHING
            RETURNING key, application, id, url, name, disabled_cause, version, deadline_ms,
                connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
                in_flight_max, ingest_rate, ingest_rate_ms, public_ingest, created_at
        ), s AS (
            INSERT INTO fencepost.endpoint_schedule (endpoint, cap, lease_ms)
            SELECT key, $11, $12 FROM e
        ), x AS (
            INSERT INTO fencepost.endpoint_secrets (id, endpoint, sealed, sealing_key)
            SELECT $13, key, $14, $15 FROM e
        )
        SELECT key, application, id, url, name, disabled_cause, version, deadline_ms,
            connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
            in_flight_max, ingest_rate, ingest_rate_ms, public_ingest, created_at
        FROM e",
        new.key.as_uuid(),
        new.application.as_uuid(),
        new.id.as_str(),
        new.url.as_str(),
        new.name.as_ref().map(EndpointName::as_str),
        millis_i32(settings.deadline()),
        millis_i32(settings.connect_deadline()),
        &retry_schedule_ms,
        millis(settings.overload_floor()),
        &final_statuses,
        i16::try_from(settings.in_flight_max()).unwrap_or(i16::MAX),
        millis_i32(lease_for(settings.deadline())),
        secret_id,
        kept.bytes,
        kept.key_id,
        integer(settings.ingest_rate().units()),
        millis(settings.ingest_rate().window()),
        settings.public_ingest(),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("endpoint::create", error))?;
    match row {
        Some(row) => Endpoint::try_from(row).map(EndpointCreation::Created),
        None => Ok(EndpointCreation::IdTaken),
    }
}
