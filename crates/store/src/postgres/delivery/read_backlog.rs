//! What is due at open endpoints, counted up to a bound for each. A plain read of one short piece of an
//! index an endpoint.

use std::time::Duration;

use domain::health::{Backlog, OldestDue};
use domain::id::EndpointKey;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(in crate::postgres) async fn read_backlog(
    pool: &Pool,
    per_endpoint: u32,
) -> Result<Backlog, StoreError> {
    let row = sqlx::query!(
        r#"-- postgres::delivery::read_backlog
        WITH e AS MATERIALIZED (
            SELECT s.endpoint, s.in_flight >= s.cap AS at_cap, q.due, q.oldest
            FROM fencepost.endpoint_schedule s
            CROSS JOIN LATERAL (
                SELECT count(*) AS due, min(x.due_at) AS oldest
                FROM (
                    SELECT d.due_at
                    FROM fencepost.deliveries d
                    WHERE d.endpoint = s.endpoint AND d.state = 1
                        AND d.due_at >= CASE WHEN s.low_water > statement_timestamp()
                            THEN '-infinity' ELSE s.low_water END
                        AND d.due_at <= statement_timestamp()
                        AND d.cancel_requested_at IS NULL
                    ORDER BY d.due_at, d.id
                    LIMIT $1
                ) x
            ) q
            WHERE s.enabled AND NOT s.deleted
                AND (s.paused_until IS NULL OR s.paused_until <= statement_timestamp())
                AND s.circuit_until IS NULL
                AND q.due > 0
        )
        SELECT t.due AS "due!", t.more AS "more!", o.endpoint AS "endpoint?", o.at_cap AS "at_cap?",
            extract(epoch FROM statement_timestamp() - o.oldest)::float8 AS "age?",
            (SELECT count(*) FROM fencepost.endpoint_schedule c
                WHERE c.circuit_until IS NOT NULL AND c.enabled AND NOT c.deleted) AS "circuits_open!"
        FROM (
            SELECT coalesce(sum(due), 0)::bigint AS due, coalesce(bool_or(due >= $1), false) AS more
            FROM e
        ) t
        LEFT JOIN LATERAL (
            SELECT endpoint, at_cap, oldest FROM e ORDER BY oldest LIMIT 1
        ) o ON true"#,
        i64::from(per_endpoint),
    )
    .fetch_one(pool)
    .await
    .map_err(|error| store_error("delivery::read_backlog", error))?;
    let oldest = match (row.endpoint, row.at_cap, row.age) {
        (Some(endpoint), Some(at_cap), Some(age)) => Some(OldestDue {
            endpoint: EndpointKey::from_uuid(endpoint),
            age: Duration::try_from_secs_f64(age).unwrap_or_default(),
            at_cap,
        }),
        _ => None,
    };
    let circuits_open = row.circuits_open.unsigned_abs();
    Ok(Backlog { due: row.due.unsigned_abs(), more: row.more, oldest, circuits_open })
}
