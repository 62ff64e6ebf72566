//! Whether the hold is on. A plain read.

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn is_held(pool: &Pool) -> Result<bool, StoreError> {
    sqlx::query_scalar!(
        "-- postgres::hold::is_held
        SELECT held FROM fencepost.holds"
    )
    .fetch_one(pool)
    .await
    .map_err(|error| store_error("hold::is_held", error))
}
