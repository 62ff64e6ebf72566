//! The live key with a digest. A key bound to an application ends with it.

use domain::id::ApplicationKey;

use crate::api_key::{ApiKey, ApiKeyDigest};
use crate::postgres::codec::corrupt;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::{StoreError, codes};

pub(in crate::postgres) async fn find(
    pool: &Pool,
    digest: &ApiKeyDigest,
) -> Result<Option<ApiKey>, StoreError> {
    let row = sqlx::query!(
        r#"-- postgres::api_key::find
        SELECT k.id, k.name, k.role, k.application, k.created_at,
            (k.last_used_at IS NULL OR k.last_used_at < statement_timestamp() - interval '1 hour')
                AS "use_due!"
        FROM fencepost.api_keys k
        WHERE k.digest = $1 AND k.revoked_at IS NULL
            AND (k.application IS NULL OR EXISTS (
                SELECT FROM fencepost.applications a
                WHERE a.key = k.application AND a.deleted_at IS NULL
            ))"#,
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
        use_due: row.use_due,
    }))
}
