//! Ends a term before its lease does. Whoever was superseded ends nothing.

use uuid::Uuid;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn resign(pool: &Pool, token: Uuid) -> Result<(), StoreError> {
    sqlx::query!(
        "-- postgres::maintenance::resign
        DELETE FROM fencepost.leaders WHERE role = 'maintenance' AND token = $1",
        token,
    )
    .execute(pool)
    .await
    .map(drop)
    .map_err(|error| store_error("maintenance::resign", error))
}
