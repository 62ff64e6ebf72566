//! What a rotation is decided on: which schemes the endpoint signs by, how many secrets are live,
//! and of which version of the configuration that is true.

use domain::endpoint::SigningSchemes;
use domain::id::EndpointKey;
use domain::signing::LiveSecrets;

use crate::postgres::codec::corrupt;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::{StoreError, codes};

pub(super) struct Current {
    pub(super) version: i64,
    pub(super) schemes: SigningSchemes,
    pub(super) live: LiveSecrets,
}

pub(super) async fn read_current(
    pool: &Pool,
    endpoint: EndpointKey,
) -> Result<Option<Current>, StoreError> {
    let row = sqlx::query!(
        r#"-- postgres::endpoint::rotate_secrets::read_current
        SELECT e.version, e.signing, s.v1 AS "v1!", s.v1a AS "v1a!"
        FROM fencepost.endpoints e
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE x.kind = 1) AS v1,
                count(*) FILTER (WHERE x.kind = 2) AS v1a
            FROM fencepost.endpoint_secrets x
            WHERE x.endpoint = e.key
                AND (x.retires_at IS NULL OR x.retires_at > statement_timestamp())
        ) s
        WHERE e.key = $1 AND e.deleted_at IS NULL"#,
        endpoint.as_uuid(),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error(super::OPERATION, error))?;
    let Some(row) = row else { return Ok(None) };
    let count = |live: i64| u32::try_from(live).unwrap_or(u32::MAX);
    Ok(Some(Current {
        version: row.version,
        schemes: codes::signing(row.signing)
            .ok_or_else(|| corrupt("endpoints", "signing", endpoint))?,
        live: LiveSecrets { v1: count(row.v1), v1a: count(row.v1a) },
    }))
}
