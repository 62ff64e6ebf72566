//! Marks an endpoint and its schedule row as deleted, in one statement.
//!
//! From then on nothing names it, nothing is accepted for it and nothing of it is claimed. What is
//! owed to it is cancelled later, also what commits after this. The row stays, so that its id is never
//! given again.

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
            "-- postgres::endpoint::delete
            WITH e AS (
                UPDATE fencepost.endpoints
                SET deleted_at = statement_timestamp(), version = version + 1,
                    updated_at = statement_timestamp()
                WHERE application = $1 AND id = $2 AND deleted_at IS NULL
                RETURNING key
            ), s AS (
                UPDATE fencepost.endpoint_schedule s SET deleted = true FROM e
                WHERE s.endpoint = e.key
            )
            SELECT key FROM e",
            application.as_uuid(),
            id.as_str(),
        )
        .fetch_optional(pool)
        .await
    })
    .await
    .map_err(|error| store_error("endpoint::delete", error))?;
    Ok(deleted.is_some())
}
