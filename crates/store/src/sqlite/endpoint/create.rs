//! Creates an endpoint together with its schedule row and its sealed secret.
//!
//! An endpoint without a schedule row would never be claimed, silently: one transaction writes
//! both.

use domain::delivery::lease::lease_for;
use domain::endpoint::EndpointName;
use uuid::Uuid;

use crate::StoreError;
use crate::endpoint::{Endpoint, EndpointCreation, NewEndpoint, secret_row};
use crate::sealing::{Sealed, Sealer};
use crate::sqlite::codec::{EndpointRow, UnixMicros, json_of_numbers, millis};
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(in crate::sqlite) async fn create(
    writer: &Writer,
    sealer: &Sealer,
    new: &NewEndpoint,
) -> Result<EndpointCreation, StoreError> {
    let secret_id = crate::new_id::uuid_now();
    let secret = sealer.seal(new.secret.expose_bytes(), &secret_row(new.key, secret_id)).map_err(
        |source| StoreError::Sealed {
            secret: secret_id.to_string(),
            endpoint: new.key.to_string(),
            source,
        },
    )?;
    let new = new.clone();
    writer
        .run("endpoint::create", move |tx| {
            Box::pin(async move {
                let Some(row) = insert_endpoint(tx, &new).await? else {
                    return Ok(EndpointCreation::IdTaken);
                };
                insert_schedule(tx, &new).await?;
                insert_secret(tx, &new, secret_id, secret).await?;
                Ok(EndpointCreation::Created(Endpoint::try_from(row)?))
            })
        })
        .await
}

/// Answers none if the id is, or once was, another endpoint's.
async fn insert_endpoint(
    tx: &mut WriteTransaction,
    new: &NewEndpoint,
) -> Result<Option<EndpointRow>, Fault> {
    let settings = &new.settings;
    let delays = settings.retry_schedule().delays().iter().copied().map(millis);
    let statuses = settings.final_statuses().iter().copied().map(i64::from);
    let mut rows = sqlx::query_as(
        "-- sqlite::endpoint::create::insert_endpoint
        INSERT INTO endpoints (
            key, application, id, url, name, deadline_ms, connect_deadline_ms, retry_schedule_ms,
            overload_floor_ms, final_statuses, in_flight_max, ingest_rate,
            ingest_rate_ms, public_ingest, created_at, updated_at
        )
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?15)
        ON CONFLICT (application, id) DO NOTHING
        RETURNING key, application, id, url, name, disabled_cause, version, deadline_ms,
            connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
            in_flight_max, ingest_rate, ingest_rate_ms, public_ingest, created_at",
    )
    .bind(new.key.as_uuid())
    .bind(new.application.as_uuid())
    .bind(new.id.as_str())
    .bind(new.url.as_str())
    .bind(new.name.as_ref().map(EndpointName::as_str))
    .bind(millis(settings.deadline()))
    .bind(millis(settings.connect_deadline()))
    .bind(json_of_numbers(delays))
    .bind(millis(settings.overload_floor()))
    .bind(json_of_numbers(statuses))
    .bind(settings.in_flight_max())
    .bind(settings.ingest_rate().units())
    .bind(millis(settings.ingest_rate().window()))
    .bind(settings.public_ingest())
    .bind(UnixMicros(tx.now()))
    .fetch_all(tx.connection())
    .await?;
    Ok(rows.pop())
}

async fn insert_schedule(tx: &mut WriteTransaction, new: &NewEndpoint) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::endpoint::create::insert_schedule
        INSERT INTO endpoint_schedule (endpoint, cap, lease_ms) VALUES (?1, ?2, ?3)",
    )
    .bind(new.key.as_uuid())
    .bind(new.settings.in_flight_max())
    .bind(millis(lease_for(new.settings.deadline())))
    .execute(tx.connection())
    .await?;
    Ok(())
}

async fn insert_secret(
    tx: &mut WriteTransaction,
    new: &NewEndpoint,
    id: Uuid,
    secret: Sealed,
) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::endpoint::create::insert_secret
        INSERT INTO endpoint_secrets (id, endpoint, sealed, sealing_key, created_at)
        VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .bind(id)
    .bind(new.key.as_uuid())
    .bind(secret.bytes)
    .bind(secret.key_id)
    .bind(UnixMicros(tx.now()))
    .execute(tx.connection())
    .await?;
    Ok(())
}
