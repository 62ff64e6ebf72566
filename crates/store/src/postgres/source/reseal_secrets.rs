//! Seals secrets of sources with the current key that other keys have sealed, one batch in the order of
//! their ids.
//!
//! Nothing is locked while a batch is sealed: a secret is replaced only if it is still as it was read.

mod replace;

use domain::id::SourceKey;
use uuid::Uuid;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::sealing::{Sealed, Sealer};
use crate::secret::{Owner, Resealing, Unopened};
use crate::source::source_secret_row;

pub(in crate::postgres) async fn reseal_secrets(
    pool: &Pool,
    sealer: &Sealer,
    after: Option<Uuid>,
    limit: u16,
) -> Result<Resealing, StoreError> {
    let rows = sqlx::query!(
        "-- postgres::source::reseal_secrets
        SELECT id, source, sealed, sealing_key
        FROM fencepost.source_secrets
        WHERE id > $1 AND sealing_key <> $2
        ORDER BY id
        LIMIT $3",
        after.unwrap_or(Uuid::nil()),
        sealer.current_id(),
        i64::from(limit),
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("source::reseal_secrets", error))?;
    let mut batch = Resealing { last: rows.last().map(|row| row.id), ..Resealing::default() };
    for row in rows {
        let source = SourceKey::from_uuid(row.source);
        let before = Sealed { key_id: row.sealing_key, bytes: row.sealed };
        match sealer.reseal(&before, &source_secret_row(source, row.id)) {
            Ok(after) => {
                if replace::replace(pool, row.id, before, after).await? {
                    batch.resealed += 1;
                } else {
                    batch.overtaken += 1;
                }
            }
            Err(error) => batch.unopened.push(Unopened {
                owner: Owner::Source(source),
                secret: Some(row.id),
                why: error.to_string(),
            }),
        }
    }
    Ok(batch)
}
