//! The live application with an id.

use domain::id::{ApplicationKey, PublicId};
use sqlx::SqliteExecutor;
use uuid::Uuid;

use crate::StoreError;
use crate::sqlite::errors::store_error;

pub(in crate::sqlite) async fn find(
    executor: impl SqliteExecutor<'_>,
    id: &PublicId,
) -> Result<Option<ApplicationKey>, StoreError> {
    let key: Option<Uuid> = sqlx::query_scalar(
        "-- sqlite::application::find
        SELECT key FROM applications WHERE id = ?1 AND deleted_at IS NULL",
    )
    .bind(id.as_str())
    .fetch_optional(executor)
    .await
    .map_err(|error| store_error("application::find", error))?;
    Ok(key.map(ApplicationKey::from_uuid))
}
