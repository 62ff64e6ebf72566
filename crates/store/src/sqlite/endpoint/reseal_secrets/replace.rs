//! Replaces sealed secrets that are still as they were read. Answers how many.

use crate::StoreError;
use crate::sealing::Sealed;
use crate::secret::StoredSecret;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(super) async fn replace(
    writer: &Writer,
    replacements: Vec<(StoredSecret, Sealed)>,
) -> Result<u32, StoreError> {
    writer
        .run("endpoint::reseal_secrets::replace", move |tx| {
            Box::pin(async move {
                let mut replaced = 0;
                for (secret, sealed) in replacements {
                    replaced += u32::from(replace_one(tx, secret, sealed).await?);
                }
                Ok(replaced)
            })
        })
        .await
}

async fn replace_one(
    tx: &mut WriteTransaction,
    before: StoredSecret,
    after: Sealed,
) -> Result<bool, Fault> {
    let done = sqlx::query(
        "-- sqlite::endpoint::reseal_secrets::replace
        UPDATE endpoint_secrets SET sealed = ?3, sealing_key = ?4 WHERE id = ?1 AND sealed = ?2",
    )
    .bind(before.id)
    .bind(before.sealed.bytes)
    .bind(after.bytes)
    .bind(after.key_id)
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() > 0)
}
