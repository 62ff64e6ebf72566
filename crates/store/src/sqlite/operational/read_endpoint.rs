//! The endpoint that events go to.

use domain::id::EndpointKey;
use sqlx::{SqliteExecutor, SqlitePool};
use uuid::Uuid;

use crate::StoreError;
use crate::operational::OperationalEndpoint;
use crate::sqlite::errors::store_error;

pub(super) async fn read_endpoint(
    readers: &SqlitePool,
) -> Result<Option<OperationalEndpoint>, StoreError> {
    read_named(readers).await.map_err(|error| store_error("operational::read_endpoint", error))
}

pub(super) async fn read_named(
    executor: impl SqliteExecutor<'_>,
) -> Result<Option<OperationalEndpoint>, sqlx::Error> {
    let row: Option<(Uuid, String, String)> = sqlx::query_as(
        "-- sqlite::operational::read_endpoint
        SELECT e.key, e.id, a.id
        FROM operational_endpoint o
        JOIN endpoints e ON e.key = o.endpoint
        JOIN applications a ON a.key = e.application
        WHERE e.deleted_at IS NULL",
    )
    .fetch_optional(executor)
    .await?;
    Ok(row.map(|(key, id, application)| OperationalEndpoint {
        key: EndpointKey::from_uuid(key),
        application,
        id,
    }))
}
