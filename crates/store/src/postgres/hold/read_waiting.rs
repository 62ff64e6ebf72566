//! What would be sent if the hold were released, by endpoint.

use std::time::Duration;

use uuid::Uuid;

use crate::StoreError;
use crate::hold::{ENDPOINTS_TOLD_MAX, WAITING_PER_ENDPOINT_MAX, WaitingEndpoint};
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn read_waiting(
    pool: &Pool,
    below: Option<Uuid>,
) -> Result<Vec<WaitingEndpoint>, StoreError> {
    sqlx::query!(
        r#"-- postgres::hold::read_waiting
        SELECT a.id AS application, e.id AS endpoint, q.due AS "due!",
            extract(epoch FROM statement_timestamp() - q.oldest)::float8 AS "age!"
        FROM fencepost.endpoint_schedule s
        JOIN fencepost.endpoints e ON e.key = s.endpoint
        JOIN fencepost.applications a ON a.key = e.application
        CROSS JOIN LATERAL (
            SELECT count(*) AS due, min(x.since) AS oldest
            FROM (
                SELECT CASE d.state WHEN 1 THEN d.due_at ELSE d.claim_expires_at END AS since
                FROM fencepost.deliveries d
                WHERE d.endpoint = s.endpoint AND d.id < $1
                    AND d.cancel_requested_at IS NULL
                    AND ((d.state = 1 AND d.due_at <= statement_timestamp())
                        OR (d.state = 2 AND d.claim_expires_at <= statement_timestamp()))
                LIMIT $2
            ) x
        ) q
        WHERE s.enabled AND NOT s.deleted
            AND (s.paused_until IS NULL OR s.paused_until <= statement_timestamp())
            AND q.due > 0
        ORDER BY q.oldest
        LIMIT $3"#,
        below.unwrap_or(Uuid::max()),
        i64::from(WAITING_PER_ENDPOINT_MAX),
        i64::from(ENDPOINTS_TOLD_MAX),
    )
    .map(|row| WaitingEndpoint {
        application: row.application,
        endpoint: row.endpoint,
        due: row.due.unsigned_abs(),
        oldest: Duration::try_from_secs_f64(row.age).unwrap_or_default(),
    })
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("hold::read_waiting", error))
}
