//! The live keys with some digests. A key bound to an application ends with it.

use domain::id::ApplicationKey;
use sqlx::{FromRow, SqliteExecutor, SqlitePool};
use uuid::Uuid;

use crate::api_key::{ApiKey, ApiKeyDigest};
use crate::sqlite::codec::{UnixMicros, corrupt};
use crate::sqlite::errors::store_error;
use crate::{StoreError, codes};

#[derive(FromRow)]
struct Row {
    id: Uuid,
    name: String,
    role: i16,
    application: Option<Uuid>,
    created_at: UnixMicros,
    use_due: bool,
}

/// In the order of the digests.
pub(in crate::sqlite) async fn find(
    readers: &SqlitePool,
    digests: &[ApiKeyDigest],
) -> Result<Vec<Option<ApiKey>>, StoreError> {
    let mut found = Vec::with_capacity(digests.len());
    for digest in digests {
        found.push(find_one(readers, digest).await?);
    }
    Ok(found)
}

/// One of them, also inside a transaction.
pub(in crate::sqlite) async fn find_one(
    executor: impl SqliteExecutor<'_>,
    digest: &ApiKeyDigest,
) -> Result<Option<ApiKey>, StoreError> {
    let row: Option<Row> = sqlx::query_as(
        "-- sqlite::api_key::find
        SELECT k.id, k.name, k.role, k.application, k.created_at,
            (k.last_used_at IS NULL
                OR k.last_used_at < CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000
                    - 3600000000)
                AS use_due
        FROM api_keys k
        WHERE k.digest = ?1 AND k.revoked_at IS NULL
            AND (k.application IS NULL OR EXISTS (
                SELECT 1 FROM applications a
                WHERE a.key = k.application AND a.deleted_at IS NULL
            ))",
    )
    .bind(digest.as_bytes().as_slice())
    .fetch_optional(executor)
    .await
    .map_err(|error| store_error("api_key::find", error))?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(ApiKey {
        id: row.id,
        name: row.name,
        role: codes::role(row.role).ok_or_else(|| corrupt("api_keys", "role", row.id))?,
        application: row.application.map(ApplicationKey::from_uuid),
        created_at: row.created_at.0,
        use_due: row.use_due,
    }))
}
