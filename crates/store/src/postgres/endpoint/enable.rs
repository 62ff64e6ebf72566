//! Enables an endpoint: it has neither a pause nor a cause for being disabled any more, and what its
//! results had come to is forgotten. Requests that are under way do not count any more.

use domain::id::{ApplicationKey, PublicId};

use crate::StoreError;
use crate::endpoint::Endpoint;
use crate::postgres::codec::EndpointRow;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::sealing::Sealer;

pub(in crate::postgres) async fn enable(
    pool: &Pool,
    sealer: &Sealer,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<Endpoint>, StoreError> {
    let row = after_conflict(|| async {
        sqlx::query_as!(
            EndpointRow,
            "-- postgres::endpoint::enable
            WITH e AS (
                UPDATE fencepost.endpoints
                SET disabled_cause = NULL, disabled_at = NULL, version = version + 1,
                    updated_at = statement_timestamp()
                WHERE application = $1 AND id = $2 AND deleted_at IS NULL
                RETURNING key, application, id, url, name, event_types, headers_sealed,
                    headers_sealing_key, disabled_cause, version, deadline_ms,
                    connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
                    in_flight_max, delivery_rate, delivery_rate_ms, ingest_rate, ingest_rate_ms,
                    signing, public_ingest, circuit_breaker, only_networks, ca_certificates, created_at,
                    updated_at
            ), s AS (
                UPDATE fencepost.endpoint_schedule s SET enabled = true, paused_until = NULL,
                    counts_from = e.version, failing_since = NULL, failed_at = NULL,
                    failures_in_a_row = 0, window_since = NULL,
                    window_succeeded = 0, window_failed = 0, circuit_times = 0, circuit_since = NULL, circuit_until = NULL, circuit_cause = NULL,
                    circuit_probe = NULL
                FROM e
                WHERE s.endpoint = e.key
                RETURNING s.paused_until
            )
            SELECT key, application, id, url, name, event_types, headers_sealed,
                headers_sealing_key, disabled_cause, version, deadline_ms,
                connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
                in_flight_max, delivery_rate, delivery_rate_ms, ingest_rate, ingest_rate_ms,
                signing, public_ingest, circuit_breaker, only_networks, ca_certificates, created_at,
                updated_at,
                (SELECT s.paused_until FROM s WHERE s.paused_until > statement_timestamp())
                    AS paused_until
            FROM e",
            application.as_uuid(),
            id.as_str(),
        )
        .fetch_optional(pool)
        .await
    })
    .await
    .map_err(|error| store_error("endpoint::enable", error))?;
    row.map(|row| row.endpoint(sealer)).transpose()
}
