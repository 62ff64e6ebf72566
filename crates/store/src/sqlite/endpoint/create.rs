//! Creates an endpoint together with its schedule row and its sealed secrets.
//!
//! An endpoint without a schedule row would never be claimed, silently: one transaction writes
//! both.

use domain::delivery::lease::lease_for;
use domain::endpoint::{EndpointName, EventPatterns};

use super::rotate_secrets::insert_secret;
use crate::endpoint::{EndpointCreation, NewEndpoint};
use crate::sealing::{Sealed, Sealer};
use crate::secret::seal_new;
use crate::sqlite::codec::{EndpointRow, SettingsColumns, UnixMicros, json_of_texts, millis};
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};
use crate::{StoreError, codes, sealed_headers};

pub(in crate::sqlite) async fn create(
    writer: &Writer,
    sealer: &Sealer,
    new: &NewEndpoint,
) -> Result<EndpointCreation, StoreError> {
    let secrets = seal_new(sealer, new.key, &new.secret, &new.ed25519)?;
    let headers = sealed_headers::seal(sealer, new.key, &new.headers)?;
    let (new, sealer) = (new.clone(), sealer.clone());
    writer
        .run("endpoint::create", move |tx| {
            Box::pin(async move {
                let Some(row) = insert_endpoint(tx, &new, headers).await? else {
                    return Ok(EndpointCreation::IdTaken);
                };
                insert_schedule(tx, &new).await?;
                for secret in secrets {
                    insert_secret(tx, new.key, secret).await?;
                }
                Ok(EndpointCreation::Created(row.endpoint(&sealer)?))
            })
        })
        .await
}

/// Answers none if the id is, or once was, another endpoint's.
async fn insert_endpoint(
    tx: &mut WriteTransaction,
    new: &NewEndpoint,
    headers: Option<Sealed>,
) -> Result<Option<EndpointRow>, Fault> {
    let settings = SettingsColumns::from(&new.settings);
    let (sealed, sealing_key) = headers.map(|sealed| (sealed.bytes, sealed.key_id)).unzip();
    let mut rows = sqlx::query_as(
        "-- sqlite::endpoint::create::insert_endpoint
        INSERT INTO endpoints (
            key, application, id, url, name, event_types, headers_sealed, headers_sealing_key,
            deadline_ms, connect_deadline_ms, retry_schedule_ms, overload_floor_ms,
            final_statuses, in_flight_max, delivery_rate, delivery_rate_ms, ingest_rate,
            ingest_rate_ms, signing, public_ingest, circuit_breaker, only_networks,
            ca_certificates, created_at, updated_at, disabled_cause, disabled_at
        )
        VALUES (
            ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
            ?20, ?21, ?22, ?23, ?24, ?24, ?25, iif(?25 IS NULL, NULL, ?24)
        )
        ON CONFLICT (application, id) DO NOTHING
        RETURNING key, application, id, url, name, event_types, headers_sealed,
            headers_sealing_key, disabled_cause, version, deadline_ms,
            connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
            in_flight_max, delivery_rate, delivery_rate_ms, ingest_rate, ingest_rate_ms,
            signing, public_ingest, circuit_breaker, only_networks, ca_certificates, created_at,
            updated_at,
            NULL AS paused_until",
    )
    .bind(new.key.as_uuid())
    .bind(new.application.as_uuid())
    .bind(new.id.as_str())
    .bind(new.url.as_str())
    .bind(new.name.as_ref().map(EndpointName::as_str))
    .bind(new.event_types.as_ref().map(EventPatterns::as_slice).map(json_of_texts))
    .bind(sealed)
    .bind(sealing_key)
    .bind(settings.deadline_ms)
    .bind(settings.connect_deadline_ms)
    .bind(settings.retry_schedule_ms)
    .bind(settings.overload_floor_ms)
    .bind(settings.final_statuses)
    .bind(settings.in_flight_max)
    .bind(settings.delivery_rate)
    .bind(settings.delivery_rate_ms)
    .bind(settings.ingest_rate)
    .bind(settings.ingest_rate_ms)
    .bind(settings.signing)
    .bind(settings.public_ingest)
    .bind(settings.circuit_breaker)
    .bind(settings.only_networks)
    .bind(settings.ca_certificates)
    .bind(UnixMicros(tx.now()))
    .bind(new.disabled().map(codes::of_disabled_cause))
    .fetch_all(tx.connection())
    .await?;
    Ok(rows.pop())
}

async fn insert_schedule(tx: &mut WriteTransaction, new: &NewEndpoint) -> Result<(), Fault> {
    let settings = SettingsColumns::from(&new.settings);
    sqlx::query(
        "-- sqlite::endpoint::create::insert_schedule
        INSERT INTO endpoint_schedule
            (endpoint, cap, lease_ms, rate_limit, rate_window_ms, circuit_breaker, enabled, held)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, (SELECT held FROM holds))",
    )
    .bind(new.key.as_uuid())
    .bind(new.settings.in_flight_max())
    .bind(millis(lease_for(new.settings.deadline())))
    .bind(settings.delivery_rate)
    .bind(settings.delivery_rate_ms)
    .bind(settings.circuit_breaker)
    .bind(new.enabled)
    .execute(tx.connection())
    .await?;
    Ok(())
}
