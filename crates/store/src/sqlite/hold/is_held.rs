//! Whether the hold is on. A plain read.

use sqlx::SqlitePool;

use crate::StoreError;
use crate::sqlite::errors::store_error;

pub(super) async fn is_held(readers: &SqlitePool) -> Result<bool, StoreError> {
    sqlx::query_scalar(
        "-- sqlite::hold::is_held
        SELECT held FROM holds",
    )
    .fetch_one(readers)
    .await
    .map_err(|error| store_error("hold::is_held", error))
}
