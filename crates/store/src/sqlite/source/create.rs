//! Creates a source together with its sealed secret and its count of refusals, in one transaction.

use domain::id::SourceKey;
use domain::label::Label;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::StoreError;
use crate::sealing::{Sealed, Sealer};
use crate::source::{NewSource, Source, SourceCreation, location_json, seal_secret};
use crate::sqlite::codec::{UnixMicros, json_of_texts};
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(in crate::sqlite) async fn create(
    writer: &Writer,
    sealer: &Sealer,
    new: &NewSource,
) -> Result<SourceCreation, StoreError> {
    let secret = seal_secret(sealer, new.key, &new.secret)?;
    let new = new.clone();
    writer
        .run("source::create", move |tx| {
            Box::pin(async move {
                if !is_live(tx, &new).await? {
                    return Ok(SourceCreation::EndpointMissing);
                }
                if !insert_source(tx, &new).await? {
                    return Ok(SourceCreation::IdTaken);
                }
                insert_refusals(tx, new.key).await?;
                insert_secret(tx, new.key, secret).await?;
                Ok(SourceCreation::Created(created(new, tx.now())))
            })
        })
        .await
}

fn created(new: NewSource, now: OffsetDateTime) -> Source {
    Source {
        key: new.key,
        application: new.application,
        id: new.id,
        name: new.name.map(|name| name.as_str().to_owned()),
        endpoint_id: new.endpoint.1.as_str().to_owned(),
        scheme: new.scheme,
        event_id: new.event_id,
        headers: new.headers,
        refused: 0,
        refusals: Vec::new(),
        version: 1,
        created_at: now,
        updated_at: now,
    }
}

async fn is_live(tx: &mut WriteTransaction, new: &NewSource) -> Result<bool, Fault> {
    let live = sqlx::query_scalar(
        "-- sqlite::source::create::is_live
        SELECT EXISTS (SELECT 1 FROM endpoints
            WHERE key = ?1 AND application = ?2 AND deleted_at IS NULL)",
    )
    .bind(new.endpoint.0.as_uuid())
    .bind(new.application.as_uuid())
    .fetch_one(tx.connection())
    .await?;
    Ok(live)
}

/// Answers whether the id was free.
async fn insert_source(tx: &mut WriteTransaction, new: &NewSource) -> Result<bool, Fault> {
    let headers: Vec<String> = new.headers.iter().map(|name| name.as_str().to_owned()).collect();
    let done = sqlx::query(
        "-- sqlite::source::create::insert_source
        INSERT INTO sources (key, application, id, name, endpoint, scheme, event_id, headers,
            created_at, updated_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)
        ON CONFLICT (application, id) DO NOTHING",
    )
    .bind(new.key.as_uuid())
    .bind(new.application.as_uuid())
    .bind(new.id.as_str())
    .bind(new.name.as_ref().map(Label::as_str))
    .bind(new.endpoint.0.as_uuid())
    .bind(new.scheme.to_json())
    .bind(new.event_id.as_ref().map(location_json))
    .bind(json_of_texts(&headers))
    .bind(UnixMicros(tx.now()))
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() > 0)
}

async fn insert_refusals(tx: &mut WriteTransaction, source: SourceKey) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::source::create::insert_refusals
        INSERT INTO source_refusals (source) VALUES (?1)",
    )
    .bind(source.as_uuid())
    .execute(tx.connection())
    .await?;
    Ok(())
}

pub(super) async fn insert_secret(
    tx: &mut WriteTransaction,
    source: SourceKey,
    (id, sealed): (Uuid, Sealed),
) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::source::create::insert_secret
        INSERT INTO source_secrets (id, source, sealed, sealing_key, created_at)
        VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .bind(id)
    .bind(source.as_uuid())
    .bind(sealed.bytes)
    .bind(sealed.key_id)
    .bind(UnixMicros(tx.now()))
    .execute(tx.connection())
    .await?;
    Ok(())
}
