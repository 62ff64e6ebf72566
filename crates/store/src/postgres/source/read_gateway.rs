//! What a request to a source is verified with.
//!
//! One statement reads settings, live secrets and the endpoint's budget, so that they belong together.

use domain::id::{ApplicationKey, EndpointKey, PublicId, SourceKey};

use crate::StoreError;
use crate::postgres::codec::{corrupt, rate};
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::sealing::{Sealed, Sealer};
use crate::source::{Gateway, SourceTexts, open_secret};

pub(in crate::postgres) async fn read_gateway(
    pool: &Pool,
    sealer: &Sealer,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<Gateway>, StoreError> {
    let row = sqlx::query!(
        r#"-- postgres::source::read_gateway
        SELECT s.key, s.id, s.endpoint, s.scheme::text AS "scheme!", s.event_id::text AS event_id,
            s.headers, e.ingest_rate, e.ingest_rate_ms, x.ids AS "secret_ids!",
            x.sealed AS "sealed!", x.sealing_keys AS "sealing_keys!"
        FROM fencepost.sources s
        JOIN fencepost.endpoints e ON e.key = s.endpoint
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(y.id), '{}') AS ids,
                coalesce(array_agg(y.sealed), '{}') AS sealed,
                coalesce(array_agg(y.sealing_key), '{}') AS sealing_keys
            FROM (
                SELECT z.id, z.sealed, z.sealing_key FROM fencepost.source_secrets z
                WHERE z.source = s.key
                    AND (z.retires_at IS NULL OR z.retires_at > statement_timestamp())
                ORDER BY z.created_at DESC, z.id DESC
            ) y
        ) x
        WHERE s.application = $1 AND s.id = $2 AND s.deleted_at IS NULL"#,
        application.as_uuid(),
        id.as_str(),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("source::read_gateway", error))?;
    let Some(row) = row else { return Ok(None) };
    let source = SourceKey::from_uuid(row.key);
    let texts = SourceTexts {
        key: row.key,
        id: &row.id,
        scheme: &row.scheme,
        event_id: row.event_id.as_deref(),
        headers: row.headers,
    };
    let (_, scheme, event_id, headers) = texts.parse()?;
    let kind = scheme.kind();
    let sealed = row.sealed.into_iter().zip(row.sealing_keys);
    let sealed = sealed.map(|(bytes, key_id)| Sealed { key_id, bytes });
    let secrets = row.secret_ids.into_iter().zip(sealed);
    let secrets = secrets.map(|(id, sealed)| open_secret(sealer, source, kind, id, &sealed));
    Ok(Some(Gateway {
        source,
        endpoint: EndpointKey::from_uuid(row.endpoint),
        ingest_rate: rate(row.ingest_rate, row.ingest_rate_ms)
            .ok_or_else(|| corrupt("endpoints", "ingest_rate", row.endpoint))?,
        event_id: event_id.unwrap_or_else(|| scheme.event_id_location()),
        scheme,
        headers,
        secrets: secrets.collect(),
    }))
}
