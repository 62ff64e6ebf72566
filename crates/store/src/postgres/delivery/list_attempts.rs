//! The attempts of a delivery, by number, as far as the delivery counted when it was read.

use bytes::Bytes;
use domain::id::{DeliveryId, EndpointKey};

use crate::delivery::{AttemptView, Evidence};
use crate::postgres::codec::{corrupt, count, integer};
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::{StoreError, codes};

pub(in crate::postgres) async fn list_attempts(
    pool: &Pool,
    endpoint: EndpointKey,
    delivery: DeliveryId,
    attempts: u32,
) -> Result<Vec<AttemptView>, StoreError> {
    let rows = sqlx::query!(
        "-- postgres::delivery::list_attempts
        SELECT number, late, worker, started_at, recorded_at, duration_ms, outcome, status, url,
            location, detail, response, response_truncated
        FROM fencepost.attempts
        WHERE endpoint = $1 AND delivery = $2 AND number <= $3
        ORDER BY number",
        endpoint.as_uuid(),
        delivery.as_uuid(),
        integer(attempts),
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("delivery::list_attempts", error))?;
    rows.into_iter()
        .map(|row| {
            Ok(AttemptView {
                number: count(row.number),
                late: row.late,
                worker: row.worker,
                started_at: row.started_at,
                recorded_at: row.recorded_at,
                duration_millis: count(row.duration_ms),
                outcome: codes::outcome_name(row.outcome)
                    .ok_or_else(|| corrupt("attempts", "outcome", delivery))?,
                status: row.status.and_then(|status| u16::try_from(status).ok()),
                evidence: Evidence {
                    url: row.url,
                    response: row.response.map(Bytes::from).unwrap_or_default(),
                    response_truncated: row.response_truncated,
                    location: row.location,
                    detail: row.detail,
                },
            })
        })
        .collect()
}
