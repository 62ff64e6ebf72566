//! The live application with an id.

use domain::id::{ApplicationKey, PublicId};

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(in crate::postgres) async fn find(
    pool: &Pool,
    id: &PublicId,
) -> Result<Option<ApplicationKey>, StoreError> {
    sqlx::query_scalar!(
        "-- postgres::application::find
        SELECT key FROM fencepost.applications WHERE id = $1 AND deleted_at IS NULL",
        id.as_str(),
    )
    .fetch_optional(pool)
    .await
    .map(|key| key.map(ApplicationKey::from_uuid))
    .map_err(|error| store_error("application::find", error))
}
