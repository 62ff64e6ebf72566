//! What a request to a source is verified with.
//!
//! One statement reads settings, live secrets and the endpoint's budget, so that they belong together.

use domain::id::{ApplicationKey, EndpointKey, PublicId, SourceKey};
use sqlx::{FromRow, SqlitePool};
use uuid::Uuid;

use super::row::header_names;
use crate::StoreError;
use crate::sealing::{Sealed, Sealer};
use crate::source::{Gateway, SourceTexts, open_secret};
use crate::sqlite::codec::{corrupt, rate};
use crate::sqlite::errors::store_error;

/// A source with one of its secrets, if it has any.
#[derive(FromRow)]
struct Row {
    key: Uuid,
    id: String,
    endpoint: Uuid,
    scheme: String,
    event_id: Option<String>,
    headers: String,
    ingest_rate: i64,
    ingest_rate_ms: i64,
    secret: Option<Uuid>,
    sealed: Option<Vec<u8>>,
    sealing_key: Option<String>,
}

pub(in crate::sqlite) async fn read_gateway(
    readers: &SqlitePool,
    sealer: &Sealer,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<Gateway>, StoreError> {
    let rows: Vec<Row> = sqlx::query_as(
        "-- sqlite::source::read_gateway
        SELECT s.key, s.id, s.endpoint, s.scheme, s.event_id, s.headers, e.ingest_rate,
            e.ingest_rate_ms, x.id AS secret, x.sealed, x.sealing_key
        FROM sources s
        JOIN endpoints e ON e.key = s.endpoint
        LEFT JOIN source_secrets x ON x.source = s.key
            AND (x.retires_at IS NULL
                OR x.retires_at > CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000)
        WHERE s.application = ?1 AND s.id = ?2 AND s.deleted_at IS NULL
        ORDER BY x.created_at DESC, x.id DESC",
    )
    .bind(application.as_uuid())
    .bind(id.as_str())
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("source::read_gateway", error))?;
    let Some(first) = rows.first() else { return Ok(None) };
    let source = SourceKey::from_uuid(first.key);
    let texts = SourceTexts {
        key: first.key,
        id: &first.id,
        scheme: &first.scheme,
        event_id: first.event_id.as_deref(),
        headers: header_names(&first.headers, first.key)?,
    };
    let (_, scheme, event_id, headers) = texts.parse()?;
    let endpoint = EndpointKey::from_uuid(first.endpoint);
    let ingest_rate = rate(first.ingest_rate, first.ingest_rate_ms)
        .ok_or_else(|| corrupt("endpoints", "ingest_rate", endpoint))?;
    let kind = scheme.kind();
    let secrets = rows.into_iter().filter_map(|row| {
        let (id, bytes, key_id) = (row.secret?, row.sealed?, row.sealing_key?);
        Some(open_secret(sealer, source, kind, id, &Sealed { key_id, bytes }))
    });
    Ok(Some(Gateway {
        source,
        endpoint,
        ingest_rate,
        event_id: event_id.unwrap_or_else(|| scheme.event_id_location()),
        scheme,
        headers,
        secrets: secrets.collect(),
    }))
}
