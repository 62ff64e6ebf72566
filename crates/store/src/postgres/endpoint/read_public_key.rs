//! The public half of an endpoint's newest Ed25519 key.

use domain::id::EndpointKey;
use domain::signing::{Ed25519PublicKey, Ed25519SecretKey, Scheme};

use crate::endpoint::secret_row;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::sealing::{Sealed, Sealer};
use crate::{StoreError, codes};

pub(in crate::postgres) async fn read_public_key(
    pool: &Pool,
    sealer: &Sealer,
    endpoint: EndpointKey,
) -> Result<Option<Ed25519PublicKey>, StoreError> {
    let row = sqlx::query!(
        "-- postgres::endpoint::read_public_key
        SELECT id, sealed, sealing_key
        FROM fencepost.endpoint_secrets
        WHERE endpoint = $1 AND kind = $2
            AND (retires_at IS NULL OR retires_at > statement_timestamp())
        ORDER BY created_at DESC, id DESC
        LIMIT 1",
        endpoint.as_uuid(),
        codes::of_scheme(Scheme::V1a),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("endpoint::read_public_key", error))?;
    let Some(row) = row else { return Ok(None) };
    let sealed = Sealed { key_id: row.sealing_key, bytes: row.sealed };
    let bytes = sealer.open(&sealed, &secret_row(endpoint, row.id)).map_err(|source| {
        StoreError::Sealed { secret: row.id.to_string(), endpoint: endpoint.to_string(), source }
    })?;
    let key = Ed25519SecretKey::from_slice(&bytes).map_err(|_| StoreError::Corrupt {
        table: "endpoint_secrets",
        column: "sealed",
        row: row.id.to_string(),
    })?;
    Ok(Some(key.public_key()))
}
