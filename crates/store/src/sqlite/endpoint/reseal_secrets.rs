//! Seals secrets with the current key that other keys have sealed, one batch in the order of their
//! ids.
//!
//! The write lock is not held while a batch is sealed: a secret is replaced only if it is still as
//! it was read, so that this may run beside the service.

mod replace;

use domain::id::EndpointKey;
use sqlx::SqlitePool;
use uuid::Uuid;

use crate::StoreError;
use crate::sealing::{Sealed, Sealer};
use crate::secret::{Resealing, StoredSecret};
use crate::sqlite::errors::store_error;
use crate::sqlite::writer::Writer;

pub(in crate::sqlite) async fn reseal_secrets(
    readers: &SqlitePool,
    writer: &Writer,
    sealer: &Sealer,
    after: Option<Uuid>,
    limit: u16,
) -> Result<Resealing, StoreError> {
    let rows: Vec<(Uuid, Uuid, i16, Vec<u8>, String)> = sqlx::query_as(
        "-- sqlite::endpoint::reseal_secrets
        SELECT id, endpoint, kind, sealed, sealing_key
        FROM endpoint_secrets
        WHERE id > ?1 AND sealing_key <> ?2
        ORDER BY id
        LIMIT ?3",
    )
    .bind(after.unwrap_or(Uuid::nil()))
    .bind(sealer.current_id())
    .bind(limit)
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("endpoint::reseal_secrets", error))?;
    let mut batch = Resealing { last: rows.last().map(|row| row.0), ..Resealing::default() };
    let mut replacements = Vec::with_capacity(rows.len());
    for (id, endpoint, kind, bytes, key_id) in rows {
        let secret = StoredSecret { id, kind, sealed: Sealed { key_id, bytes } };
        match secret.reseal(sealer, EndpointKey::from_uuid(endpoint)) {
            Ok(sealed) => replacements.push((secret, sealed)),
            Err(unopened) => batch.unopened.push(unopened),
        }
    }
    let wanted = u32::try_from(replacements.len()).unwrap_or(u32::MAX);
    batch.resealed = replace::replace(writer, replacements).await?;
    batch.overtaken = wanted.saturating_sub(batch.resealed);
    Ok(batch)
}
