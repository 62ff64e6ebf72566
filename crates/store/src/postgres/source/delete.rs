//! Marks a source as deleted. From then on nothing is received for it; the row stays, so that its id is
//! never given again.

use domain::id::{ApplicationKey, PublicId};

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;

pub(in crate::postgres) async fn delete(
    pool: &Pool,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<bool, StoreError> {
    let deleted = after_conflict(|| async {
        sqlx::query_scalar!(
            "-- postgres::source::delete
            UPDATE fencepost.sources
            SET deleted_at = statement_timestamp(), version = version + 1,
                updated_at = statement_timestamp()
            WHERE application = $1 AND id = $2 AND deleted_at IS NULL
            RETURNING key",
            application.as_uuid(),
            id.as_str(),
        )
        .fetch_optional(pool)
        .await
    })
    .await
    .map_err(|error| store_error("source::delete", error))?;
    Ok(deleted.is_some())
}
