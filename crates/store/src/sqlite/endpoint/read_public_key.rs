//! The public half of an endpoint's newest Ed25519 key.

use domain::id::EndpointKey;
use domain::signing::{Ed25519PublicKey, Ed25519SecretKey, Scheme};
use sqlx::SqlitePool;
use uuid::Uuid;

use crate::endpoint::secret_row;
use crate::sealing::{Sealed, Sealer};
use crate::sqlite::codec::corrupt;
use crate::sqlite::errors::store_error;
use crate::{StoreError, codes};

pub(in crate::sqlite) async fn read_public_key(
    readers: &SqlitePool,
    sealer: &Sealer,
    endpoint: EndpointKey,
) -> Result<Option<Ed25519PublicKey>, StoreError> {
    let row: Option<(Uuid, Vec<u8>, String)> = sqlx::query_as(
        "-- sqlite::endpoint::read_public_key
        SELECT id, sealed, sealing_key
        FROM endpoint_secrets
        WHERE endpoint = ?1 AND kind = ?2
            AND (retires_at IS NULL
                OR retires_at > CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000)
        ORDER BY created_at DESC, id DESC
        LIMIT 1",
    )
    .bind(endpoint.as_uuid())
    .bind(codes::of_scheme(Scheme::V1a))
    .fetch_optional(readers)
    .await
    .map_err(|error| store_error("endpoint::read_public_key", error))?;
    let Some((id, bytes, key_id)) = row else { return Ok(None) };
    let bytes =
        sealer.open(&Sealed { key_id, bytes }, &secret_row(endpoint, id)).map_err(|source| {
            StoreError::Sealed { secret: id.to_string(), endpoint: endpoint.to_string(), source }
        })?;
    let key = Ed25519SecretKey::from_slice(&bytes)
        .map_err(|_| corrupt("endpoint_secrets", "sealed", id))?;
    Ok(Some(key.public_key()))
}
