//! Whether any live key exists.

use sqlx::SqlitePool;

use crate::StoreError;
use crate::sqlite::errors::store_error;

pub(in crate::sqlite) async fn has_any(readers: &SqlitePool) -> Result<bool, StoreError> {
    sqlx::query_scalar(
        "-- sqlite::api_key::has_any
        SELECT EXISTS (SELECT 1 FROM api_keys WHERE revoked_at IS NULL)",
    )
    .fetch_one(readers)
    .await
    .map_err(|error| store_error("api_key::has_any", error))
}
