//! The live keys with some digests. A key bound to an application ends with it.

use domain::id::ApplicationKey;

use crate::api_key::{ApiKey, ApiKeyDigest};
use crate::postgres::codec::corrupt;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::{StoreError, codes};

/// In the order of the digests.
pub(in crate::postgres) async fn find(
    pool: &Pool,
    digests: &[ApiKeyDigest],
) -> Result<Vec<Option<ApiKey>>, StoreError> {
    let bytes: Vec<&[u8]> = digests.iter().map(|digest| digest.as_bytes().as_slice()).collect();
    let rows = sqlx::query!(
        r#"-- postgres::api_key::find
        SELECT r.n AS "place!", k.id, k.name, k.role, k.application, k.created_at,
            (k.last_used_at IS NULL OR k.last_used_at < statement_timestamp() - interval '1 hour')
                AS "use_due!"
        FROM unnest($1::bytea[]) WITH ORDINALITY AS r(digest, n)
        JOIN fencepost.api_keys k ON k.digest = r.digest
        WHERE k.revoked_at IS NULL
            AND (k.application IS NULL OR EXISTS (
                SELECT FROM fencepost.applications a
                WHERE a.key = k.application AND a.deleted_at IS NULL
            ))"#,
        &bytes as &[&[u8]],
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("api_key::find", error))?;
    let mut found = vec![None; digests.len()];
    for row in rows {
        let key = ApiKey {
            id: row.id,
            name: row.name,
            role: codes::role(row.role).ok_or_else(|| corrupt("api_keys", "role", row.id))?,
            application: row.application.map(ApplicationKey::from_uuid),
            created_at: row.created_at,
            use_due: row.use_due,
        };
        let place = usize::try_from(row.place - 1).ok();
        if let Some(place) = place.and_then(|place| found.get_mut(place)) {
            *place = Some(key);
        }
    }
    Ok(found)
}
