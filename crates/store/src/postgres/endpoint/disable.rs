//! Disables an endpoint if its configuration is still of the version that a worker read.
//!
//! A 410 from the old URL must not disable an endpoint that has meanwhile got a new one. Locks are
//! taken in the order endpoint, schedule.

use domain::endpoint::DisabledCause;
use domain::id::EndpointKey;

use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::{StoreError, codes};

pub(in crate::postgres) async fn disable(
    pool: &Pool,
    endpoint: EndpointKey,
    version: i64,
    cause: DisabledCause,
) -> Result<bool, StoreError> {
    let disabled = after_conflict(|| async {
        sqlx::query_scalar!(
            "-- postgres::endpoint::disable
            WITH e AS (
                UPDATE fencepost.endpoints
                SET disabled_cause = $3, disabled_at = statement_timestamp(), version = version + 1,
                    updated_at = statement_timestamp()
                WHERE key = $1 AND version = $2 AND disabled_cause IS NULL AND deleted_at IS NULL
                RETURNING key
            ), told AS (
                INSERT INTO fencepost.operational_events (kind, code, endpoint)
                SELECT 1, $3, e.key
                FROM e JOIN fencepost.operational_endpoint o ON o.endpoint <> e.key
            )
            UPDATE fencepost.endpoint_schedule s
            SET enabled = false
            FROM e
            WHERE s.endpoint = e.key
            RETURNING s.endpoint",
            endpoint.as_uuid(),
            version,
            codes::of_disabled_cause(cause),
        )
        .fetch_optional(pool)
        .await
    })
    .await
    .map_err(|error| store_error("endpoint::disable", error))?;
    Ok(disabled.is_some())
}
