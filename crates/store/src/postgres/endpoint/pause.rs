//! Pauses an endpoint: later claims find it closed until the end of the pause.
//!
//! The end is reckoned on the clock of the database, and the answer is what was stored.

use domain::id::{ApplicationKey, PublicId};

use crate::StoreError;
use crate::endpoint::{Endpoint, PAUSED_FOR_GOOD, Pause};
use crate::postgres::codec::EndpointRow;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::sealing::Sealer;

pub(in crate::postgres) async fn pause(
    pool: &Pool,
    sealer: &Sealer,
    application: ApplicationKey,
    id: &PublicId,
    pause: Pause,
) -> Result<Option<Endpoint>, StoreError> {
    let (until, seconds) = match pause {
        Pause::ForGood => (Some(PAUSED_FOR_GOOD), None),
        Pause::Until(until) => (Some(until), None),
        Pause::For(duration) => (None, Some(duration.as_secs_f64())),
    };
    let row = after_conflict(|| async {
        sqlx::query_as!(
            EndpointRow,
            "-- postgres::endpoint::pause
            WITH e AS (
                UPDATE fencepost.endpoints
                SET version = version + 1, updated_at = statement_timestamp()
                WHERE application = $1 AND id = $2 AND deleted_at IS NULL
                RETURNING key, application, id, url, name, event_types, headers_sealed,
                    headers_sealing_key, disabled_cause, version, deadline_ms,
                    connect_deadline_ms, retry_schedule_ms, overload_floor_ms, final_statuses,
                    in_flight_max, delivery_rate, delivery_rate_ms, ingest_rate, ingest_rate_ms,
                    signing, public_ingest, circuit_breaker, only_networks, ca_certificates, created_at,
                    updated_at
            ), s AS (
                UPDATE fencepost.endpoint_schedule s SET paused_until = coalesce(
                    $3::timestamptz, statement_timestamp() + $4::float8 * interval '1 second')
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
            until,
            seconds,
        )
        .fetch_optional(pool)
        .await
    })
    .await
    .map_err(|error| store_error("endpoint::pause", error))?;
    row.map(|row| row.endpoint(sealer)).transpose()
}
