//! The live key with a digest.

use domain::id::ApplicationKey;
use sqlx::PgPool;

use crate::api_key::{ApiKey, ApiKeyDigest};
use crate::postgres::codec::corrupt;
use crate::postgres::errors::store_error;
use crate::{StoreError, codes};

pub(in crate::postgres) async fn find(
    pool: &PgPool,
    digest: &ApiKeyDigest,
) -> Result<Option<ApiKey>, StoreError> {
    let row = sqlx::query!(
        "-- postgres::api_key::find
        SELECT id, name, role, application, created_at
        FROM fencepost.api_keys
        WHERE digest = $1 AND revoked_at IS NULL",
        digest.as_bytes(),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("api_key::find", error))?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(ApiKey {
        id: row.id,
        name: row.name,
        role: codes::role(row.role).ok_or_else(|| corrupt("api_keys", "role", row.id))?,
        application: row.application.map(ApplicationKey::from_uuid),
        created_at: row.created_at,
    }))
}
