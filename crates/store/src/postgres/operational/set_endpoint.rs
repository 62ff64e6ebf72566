//! Names the endpoint that events go to, if it is not deleted, and answers what it named.

use domain::id::EndpointKey;

use crate::StoreError;
use crate::operational::OperationalEndpoint;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn set_endpoint(
    pool: &Pool,
    endpoint: EndpointKey,
) -> Result<Option<OperationalEndpoint>, StoreError> {
    sqlx::query!(
        "-- postgres::operational::set_endpoint
        UPDATE fencepost.operational_endpoint o SET endpoint = e.key
        FROM fencepost.endpoints e
        JOIN fencepost.applications a ON a.key = e.application
        WHERE o.one AND e.key = $1 AND e.deleted_at IS NULL
        RETURNING e.key, e.id, a.id AS application",
        endpoint.as_uuid(),
    )
    .map(|row| OperationalEndpoint {
        key: EndpointKey::from_uuid(row.key),
        application: row.application,
        id: row.id,
    })
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("operational::set_endpoint", error))
}
