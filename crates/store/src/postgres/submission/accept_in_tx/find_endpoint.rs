//! The key of the live endpoint that two public ids name. A plain read: an application's transaction
//! holds no lock on it.

use domain::id::PublicId;
use sqlx::PgExecutor;
use uuid::Uuid;

/// None if there is no such application, and none within if it has no such endpoint.
pub(super) async fn find_endpoint(
    executor: impl PgExecutor<'_>,
    application_id: &PublicId,
    endpoint_id: &PublicId,
) -> Result<Option<Option<Uuid>>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"-- postgres::submission::accept_in_tx::find_endpoint
        SELECT e.key AS "key?"
        FROM fencepost.applications a
        LEFT JOIN fencepost.endpoints e
            ON e.application = a.key AND e.id = $2 AND e.deleted_at IS NULL
        WHERE a.id = $1 AND a.deleted_at IS NULL"#,
        application_id.as_str(),
        endpoint_id.as_str(),
    )
    .fetch_optional(executor)
    .await
}
