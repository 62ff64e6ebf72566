//! Replaces a sealed secret that is still as it was read. Answers whether it was.

use uuid::Uuid;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::sealing::Sealed;

pub(super) async fn replace(
    pool: &Pool,
    id: Uuid,
    before: Sealed,
    after: Sealed,
) -> Result<bool, StoreError> {
    let done = after_conflict(|| async {
        sqlx::query!(
            "-- postgres::source::reseal_secrets::replace
            UPDATE fencepost.source_secrets SET sealed = $3, sealing_key = $4
            WHERE id = $1 AND sealed = $2",
            id,
            before.bytes,
            after.bytes,
            after.key_id,
        )
        .execute(pool)
        .await
    })
    .await
    .map_err(|error| store_error("source::reseal_secrets::replace", error))?;
    Ok(done.rows_affected() > 0)
}
