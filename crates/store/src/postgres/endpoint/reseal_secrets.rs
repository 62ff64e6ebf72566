//! Seals secrets with the current key that other keys have sealed, one batch in the order of their
//! ids.
//!
//! Nothing is locked while a batch is sealed: a secret is replaced only if it is still as it was
//! read, so that this may run beside the service and beside itself.

mod replace;

use domain::id::EndpointKey;
use uuid::Uuid;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::sealing::{Sealed, Sealer};
use crate::secret::{Resealing, StoredSecret};

pub(in crate::postgres) async fn reseal_secrets(
    pool: &Pool,
    sealer: &Sealer,
    after: Option<Uuid>,
    limit: u16,
) -> Result<Resealing, StoreError> {
    let rows = sqlx::query!(
        "-- postgres::endpoint::reseal_secrets
        SELECT id, endpoint, kind, sealed, sealing_key
        FROM fencepost.endpoint_secrets
        WHERE id > $1 AND sealing_key <> $2
        ORDER BY id
        LIMIT $3",
        after.unwrap_or(Uuid::nil()),
        sealer.current_id(),
        i64::from(limit),
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("endpoint::reseal_secrets", error))?;
    let mut batch = Resealing { last: rows.last().map(|row| row.id), ..Resealing::default() };
    let mut replacements = Vec::with_capacity(rows.len());
    for row in rows {
        let sealed = Sealed { key_id: row.sealing_key, bytes: row.sealed };
        let secret = StoredSecret { id: row.id, kind: row.kind, sealed };
        match secret.reseal(sealer, EndpointKey::from_uuid(row.endpoint)) {
            Ok(sealed) => replacements.push((secret, sealed)),
            Err(unopened) => batch.unopened.push(unopened),
        }
    }
    let wanted = u32::try_from(replacements.len()).unwrap_or(u32::MAX);
    batch.resealed = replace::replace(pool, replacements).await?;
    batch.overtaken = wanted.saturating_sub(batch.resealed);
    Ok(batch)
}
