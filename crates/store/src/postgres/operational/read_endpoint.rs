//! The endpoint that events go to.

use domain::id::EndpointKey;

use crate::StoreError;
use crate::operational::OperationalEndpoint;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn read_endpoint(pool: &Pool) -> Result<Option<OperationalEndpoint>, StoreError> {
    sqlx::query!(
        "-- postgres::operational::read_endpoint
        SELECT e.key, e.id, a.id AS application
        FROM fencepost.operational_endpoint o
        JOIN fencepost.endpoints e ON e.key = o.endpoint
        JOIN fencepost.applications a ON a.key = e.application
        WHERE e.deleted_at IS NULL",
    )
    .map(|row| OperationalEndpoint {
        key: EndpointKey::from_uuid(row.key),
        application: row.application,
        id: row.id,
    })
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("operational::read_endpoint", error))
}
