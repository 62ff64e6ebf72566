//! Seals secrets of sources with the current key that other keys have sealed, one batch in the order of
//! their ids.
//!
//! The write lock is not held while a batch is sealed: a secret is replaced only if it is still as it
//! was read.

mod replace;

use domain::id::SourceKey;
use sqlx::SqlitePool;
use uuid::Uuid;

use crate::StoreError;
use crate::sealing::{Sealed, Sealer};
use crate::secret::{Owner, Resealing, Unopened};
use crate::source::source_secret_row;
use crate::sqlite::errors::store_error;
use crate::sqlite::writer::Writer;

pub(in crate::sqlite) async fn reseal_secrets(
    readers: &SqlitePool,
    writer: &Writer,
    sealer: &Sealer,
    after: Option<Uuid>,
    limit: u16,
) -> Result<Resealing, StoreError> {
    let rows: Vec<(Uuid, Uuid, Vec<u8>, String)> = sqlx::query_as(
        "-- sqlite::source::reseal_secrets
        SELECT id, source, sealed, sealing_key
        FROM source_secrets
        WHERE id > ?1 AND sealing_key <> ?2
        ORDER BY id
        LIMIT ?3",
    )
    .bind(after.unwrap_or(Uuid::nil()))
    .bind(sealer.current_id())
    .bind(limit)
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("source::reseal_secrets", error))?;
    let mut batch = Resealing { last: rows.last().map(|row| row.0), ..Resealing::default() };
    for (id, source, bytes, key_id) in rows {
        let source = SourceKey::from_uuid(source);
        let before = Sealed { key_id, bytes };
        match sealer.reseal(&before, &source_secret_row(source, id)) {
            Ok(after) => {
                if replace::replace(writer, id, before, after).await? {
                    batch.resealed += 1;
                } else {
                    batch.overtaken += 1;
                }
            }
            Err(error) => batch.unopened.push(Unopened {
                owner: Owner::Source(source),
                secret: Some(id),
                why: error.to_string(),
            }),
        }
    }
    Ok(batch)
}
