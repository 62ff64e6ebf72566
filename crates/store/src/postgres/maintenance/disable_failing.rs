//! Disables endpoints that have been failing for too long, as [`Failing::is_over`] has it.
//!
//! Candidates come from a plain read. Endpoint and schedule row are locked then, in this order, and the
//! run of failures is looked at again on the locked row: a success that was recorded meanwhile, or an
//! operator who enabled the endpoint, has ended it. What somebody holds is left to the next time.

use domain::endpoint::{DisabledCause, FAILING_LAST, FAILING_MAX};
use domain::id::EndpointKey;

use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::{StoreError, codes};

#[cfg(doc)]
use domain::endpoint::Failing;

pub(super) async fn disable_failing(
    pool: &Pool,
    limit: u32,
) -> Result<Vec<EndpointKey>, StoreError> {
    let keys = after_conflict(|| async {
        sqlx::query_scalar!(
            r#"-- postgres::maintenance::disable_failing
            WITH c AS MATERIALIZED (
                SELECT s.endpoint
                FROM fencepost.endpoint_schedule s
                WHERE s.enabled AND NOT s.deleted
                    AND s.failing_since <= statement_timestamp() - $2::float8 * interval '1 second'
                    AND s.failed_at >= s.failing_since + $3::float8 * interval '1 second'
                ORDER BY s.endpoint
                LIMIT $1
            ), l AS MATERIALIZED (
                SELECT e.key
                FROM fencepost.endpoints e
                WHERE e.key = ANY(ARRAY(SELECT endpoint FROM c))
                    AND e.disabled_cause IS NULL AND e.deleted_at IS NULL
                ORDER BY e.key
                FOR NO KEY UPDATE SKIP LOCKED
            ), sl AS MATERIALIZED (
                SELECT s.endpoint
                FROM fencepost.endpoint_schedule s
                WHERE s.endpoint = ANY(ARRAY(SELECT key FROM l))
                    AND s.enabled AND NOT s.deleted
                    AND s.failing_since <= statement_timestamp() - $2::float8 * interval '1 second'
                    AND s.failed_at >= s.failing_since + $3::float8 * interval '1 second'
                ORDER BY s.endpoint
                FOR NO KEY UPDATE SKIP LOCKED
            ), e AS (
                UPDATE fencepost.endpoints e
                SET disabled_cause = $4, disabled_at = statement_timestamp(),
                    version = version + 1, updated_at = statement_timestamp()
                WHERE e.key = ANY(ARRAY(SELECT endpoint FROM sl))
                RETURNING e.key
            ), o AS MATERIALIZED (
                SELECT endpoint FROM fencepost.operational_endpoint WHERE one
            ), told AS (
                INSERT INTO fencepost.operational_events (kind, code, endpoint)
                SELECT 1, $4, e.key
                FROM e JOIN o ON o.endpoint <> e.key
            )
            UPDATE fencepost.endpoint_schedule s SET enabled = false
            FROM e
            WHERE s.endpoint = e.key
            RETURNING s.endpoint"#,
            i64::from(limit),
            FAILING_MAX.as_secs_f64(),
            FAILING_LAST.as_secs_f64(),
            codes::of_disabled_cause(DisabledCause::Failing),
        )
        .fetch_all(pool)
        .await
    })
    .await
    .map_err(|error| store_error("maintenance::disable_failing", error))?;
    Ok(keys.into_iter().map(EndpointKey::from_uuid).collect())
}
