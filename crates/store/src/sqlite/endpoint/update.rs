//! Changes an endpoint (G7): reads it, asks the domain, writes the whole, in one transaction.

use domain::delivery::lease::lease_for;
use domain::endpoint::circuit::Circuit;
use domain::id::{ApplicationKey, EndpointKey, PublicId};
use domain::operational::What;
use domain::signing::Scheme;

use super::find::find_row;
use super::rotate_secrets::insert_secret;
use crate::endpoint::{Changed, EndpointChange, EndpointUpdate, secret_row};
use crate::sealing::{Sealed, Sealer};
use crate::secret::NewSecret;
use crate::sqlite::codec::{SettingsColumns, UnixMicros, json_of_texts, millis};
use crate::sqlite::errors::Fault;
use crate::sqlite::life::{forget_life, write_circuit};
use crate::sqlite::operational::tell;
use crate::sqlite::writer::{WriteTransaction, Writer};
use crate::{StoreError, codes, sealed_headers};

pub(in crate::sqlite) async fn update(
    writer: &Writer,
    sealer: &Sealer,
    application: ApplicationKey,
    id: &PublicId,
    change: &EndpointChange,
) -> Result<EndpointUpdate, StoreError> {
    let (sealer, id, change) = (sealer.clone(), id.clone(), change.clone());
    writer
        .run("endpoint::update", move |tx| {
            Box::pin(async move { read_and_write(tx, &sealer, application, &id, &change).await })
        })
        .await
}

async fn read_and_write(
    tx: &mut WriteTransaction,
    sealer: &Sealer,
    application: ApplicationKey,
    id: &PublicId,
    change: &EndpointChange,
) -> Result<EndpointUpdate, Fault> {
    let Some(row) = find_row(tx.connection(), application, id).await? else {
        return Ok(EndpointUpdate::Missing);
    };
    let old = row.endpoint(sealer)?;
    let changed = match change.apply(&old) {
        Ok(_) if change.is_empty() => {
            return Ok(EndpointUpdate::Updated { endpoint: old, minted: false });
        }
        Ok(changed) => changed,
        Err(error) => return Ok(EndpointUpdate::Invalid(error)),
    };
    write_endpoint(tx, old.key, &changed).await?;
    if let Some(headers) = &change.headers {
        write_headers(tx, old.key, sealed_headers::seal(sealer, old.key, headers)?).await?;
    }
    write_schedule(tx, old.key, &changed).await?;
    if changed.begins_anew {
        forget_life(tx, old.key).await?;
    } else if !changed.settings.circuit_breaker() {
        write_circuit(tx, old.key, &Circuit::default()).await?;
    }
    if let Some(cause) = changed.disabled.filter(|_| changed.newly_disabled) {
        tell(tx, old.key, What::EndpointDisabled(cause)).await?;
    }
    if let Some(secret) = &changed.minted {
        tell(tx, old.key, What::SecretRotated).await?;
        end_secrets(tx, old.key).await?;
        let secret_id = crate::new_id::uuid_now();
        let row = secret_row(old.key, secret_id);
        let sealed = sealer.seal(secret.expose_bytes(), &row).map_err(|source| {
            let (secret, endpoint) = (secret_id.to_string(), old.key.to_string());
            StoreError::Sealed { secret, endpoint, source }
        })?;
        let kind = codes::of_scheme(Scheme::V1);
        insert_secret(tx, old.key, NewSecret { id: secret_id, kind, sealed }).await?;
    }
    match find_row(tx.connection(), application, id).await? {
        Some(row) => {
            let (endpoint, minted) = (row.endpoint(sealer)?, changed.minted.is_some());
            Ok(EndpointUpdate::Updated { endpoint, minted })
        }
        None => Ok(EndpointUpdate::Missing),
    }
}

async fn write_endpoint(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    changed: &Changed,
) -> Result<(), Fault> {
    let settings = SettingsColumns::from(&changed.settings);
    sqlx::query(
        "-- sqlite::endpoint::update::write_endpoint
        UPDATE endpoints SET
            url = ?2, name = ?3, event_types = ?4, disabled_cause = ?5,
            disabled_at = CASE WHEN ?5 IS NULL THEN NULL WHEN disabled_cause IS NULL THEN ?20
                ELSE disabled_at END,
            deadline_ms = ?6,
            connect_deadline_ms = ?7, retry_schedule_ms = ?8, overload_floor_ms = ?9,
            final_statuses = ?10, in_flight_max = ?11, delivery_rate = ?12,
            delivery_rate_ms = ?13, ingest_rate = ?14, ingest_rate_ms = ?15, signing = ?16,
            public_ingest = ?17, circuit_breaker = ?21, only_networks = ?18, ca_certificates = ?19,
            version = version + 1, updated_at = ?20
        WHERE key = ?1",
    )
    .bind(endpoint.as_uuid())
    .bind(&changed.url)
    .bind(changed.name.as_deref())
    .bind(changed.event_types.as_deref().map(json_of_texts))
    .bind(changed.disabled.map(codes::of_disabled_cause))
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
    .bind(settings.only_networks)
    .bind(settings.ca_certificates)
    .bind(UnixMicros(tx.now()))
    .bind(settings.circuit_breaker)
    .execute(tx.connection())
    .await?;
    Ok(())
}

async fn write_headers(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    headers: Option<Sealed>,
) -> Result<(), Fault> {
    let (sealed, sealing_key) = headers.map(|sealed| (sealed.bytes, sealed.key_id)).unzip();
    sqlx::query(
        "-- sqlite::endpoint::update::write_headers
        UPDATE endpoints SET headers_sealed = ?2, headers_sealing_key = ?3 WHERE key = ?1",
    )
    .bind(endpoint.as_uuid())
    .bind(sealed)
    .bind(sealing_key)
    .execute(tx.connection())
    .await?;
    Ok(())
}

async fn write_schedule(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    changed: &Changed,
) -> Result<(), Fault> {
    let settings = SettingsColumns::from(&changed.settings);
    sqlx::query(
        "-- sqlite::endpoint::update::write_schedule
        UPDATE endpoint_schedule
        SET cap = ?2, lease_ms = ?3, enabled = ?4, rate_limit = ?5, rate_window_ms = ?6,
            circuit_breaker = ?7
        WHERE endpoint = ?1",
    )
    .bind(endpoint.as_uuid())
    .bind(settings.in_flight_max)
    .bind(millis(lease_for(changed.settings.deadline())))
    .bind(changed.disabled.is_none())
    .bind(settings.delivery_rate)
    .bind(settings.delivery_rate_ms)
    .bind(settings.circuit_breaker)
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// From now on nothing is signed with the secrets that there are.
async fn end_secrets(tx: &mut WriteTransaction, endpoint: EndpointKey) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::endpoint::update::end_secrets
        UPDATE endpoint_secrets SET retires_at = ?2
        WHERE endpoint = ?1 AND kind = 1 AND (retires_at IS NULL OR retires_at > ?2)",
    )
    .bind(endpoint.as_uuid())
    .bind(UnixMicros(tx.now()))
    .execute(tx.connection())
    .await?;
    Ok(())
}
