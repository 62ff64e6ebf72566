//! What a rotation is decided on: which schemes the endpoint signs by, how many secrets are live,
//! and the version of the configuration.

use domain::endpoint::SigningSchemes;
use domain::id::EndpointKey;
use domain::signing::LiveSecrets;

use crate::codes;
use crate::sqlite::codec::{UnixMicros, corrupt};
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::WriteTransaction;

pub(super) struct Current {
    pub(super) version: i64,
    pub(super) schemes: SigningSchemes,
    pub(super) live: LiveSecrets,
}

pub(super) async fn read_current(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
) -> Result<Option<Current>, Fault> {
    let row: Option<(i64, i16, u32, u32)> = sqlx::query_as(
        "-- sqlite::endpoint::rotate_secrets::read_current
        SELECT e.version, e.signing, count(*) FILTER (WHERE s.kind = 1),
            count(*) FILTER (WHERE s.kind = 2)
        FROM endpoints e
        LEFT JOIN endpoint_secrets s ON s.endpoint = e.key
            AND (s.retires_at IS NULL OR s.retires_at > ?2)
        WHERE e.key = ?1 AND e.deleted_at IS NULL
        GROUP BY e.key",
    )
    .bind(endpoint.as_uuid())
    .bind(UnixMicros(tx.now()))
    .fetch_optional(tx.connection())
    .await?;
    let Some((version, signing, v1, v1a)) = row else { return Ok(None) };
    let schemes =
        codes::signing(signing).ok_or_else(|| corrupt("endpoints", "signing", endpoint))?;
    Ok(Some(Current { version, schemes, live: LiveSecrets { v1, v1a } }))
}
