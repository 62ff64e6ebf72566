//! Takes events away.

use uuid::Uuid;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn forget_events(pool: &Pool, ids: &[Uuid]) -> Result<u64, StoreError> {
    sqlx::query!(
        "-- postgres::operational::forget_events
        DELETE FROM fencepost.operational_events WHERE id = ANY($1::uuid[])",
        ids,
    )
    .execute(pool)
    .await
    .map(|done| done.rows_affected())
    .map_err(|error| store_error("operational::forget_events", error))
}
