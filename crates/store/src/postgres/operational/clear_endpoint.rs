//! Lets events go nowhere.

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn clear_endpoint(pool: &Pool) -> Result<(), StoreError> {
    sqlx::query!(
        "-- postgres::operational::clear_endpoint
        UPDATE fencepost.operational_endpoint SET endpoint = NULL WHERE one",
    )
    .execute(pool)
    .await
    .map(|_| ())
    .map_err(|error| store_error("operational::clear_endpoint", error))
}
