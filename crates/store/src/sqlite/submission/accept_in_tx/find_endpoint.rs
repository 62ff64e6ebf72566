//! The key of the live endpoint that two public ids name.

use domain::id::PublicId;
use sqlx::SqliteExecutor;
use uuid::Uuid;

/// None if there is no such application, and none within if it has no such endpoint.
pub(super) async fn find_endpoint(
    executor: impl SqliteExecutor<'_>,
    application_id: &PublicId,
    endpoint_id: &PublicId,
) -> Result<Option<Option<Uuid>>, sqlx::Error> {
    sqlx::query_scalar(
        "-- sqlite::submission::accept_in_tx::find_endpoint
        SELECT e.key
        FROM applications a
        LEFT JOIN endpoints e ON e.application = a.key AND e.id = ?2 AND e.deleted_at IS NULL
        WHERE a.id = ?1 AND a.deleted_at IS NULL",
    )
    .bind(application_id.as_str())
    .bind(endpoint_id.as_str())
    .fetch_optional(executor)
    .await
}
