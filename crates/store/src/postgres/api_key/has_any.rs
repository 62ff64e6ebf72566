//! Whether any live key exists.

use crate::postgres::pool::Pool;

use crate::StoreError;
use crate::postgres::errors::store_error;

pub(in crate::postgres) async fn has_any(pool: &Pool) -> Result<bool, StoreError> {
    sqlx::query_scalar!(
        r#"-- postgres::api_key::has_any
        SELECT EXISTS (SELECT FROM fencepost.api_keys WHERE revoked_at IS NULL) AS "exists!""#,
    )
    .fetch_one(pool)
    .await
    .map_err(|error| store_error("api_key::has_any", error))
}
