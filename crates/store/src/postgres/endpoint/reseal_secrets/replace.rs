//! Replaces sealed secrets that are still as they were read. Answers how many.

use uuid::Uuid;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::sealing::Sealed;
use crate::secret::StoredSecret;

pub(super) async fn replace(
    pool: &Pool,
    replacements: Vec<(StoredSecret, Sealed)>,
) -> Result<u32, StoreError> {
    let mut ids: Vec<Uuid> = Vec::new();
    let (mut before, mut after, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for (secret, sealed) in replacements {
        ids.push(secret.id);
        before.push(secret.sealed.bytes);
        after.push(sealed.bytes);
        keys.push(sealed.key_id);
    }
    let done = after_conflict(|| async {
        sqlx::query!(
            "-- postgres::endpoint::reseal_secrets::replace
            UPDATE fencepost.endpoint_secrets s
            SET sealed = n.after, sealing_key = n.key
            FROM unnest($1::uuid[], $2::bytea[], $3::bytea[], $4::text[]) AS n (id, before, after, key)
            WHERE s.id = n.id AND s.sealed = n.before",
            &ids,
            &before,
            &after,
            &keys,
        )
        .execute(pool)
        .await
    })
    .await
    .map_err(|error| store_error("endpoint::reseal_secrets::replace", error))?;
    Ok(u32::try_from(done.rows_affected()).unwrap_or(u32::MAX))
}
