//! Records late results of deliveries that are settled by now: history, and the counter, no more.
//!
//! The settled rows are found by a join, which leaves out the partitions of other days at run time;
//! `= ANY` would probe them all under a generic plan.

use crate::postgres::pool::Pool;

use super::columns::Columns;
use crate::delivery::{Recording, Report};
use crate::postgres::codec::{count, range};

/// Answers none for a delivery that it did not find.
pub(super) async fn record_settled(
    pool: &Pool,
    reports: &[&Report],
) -> Result<Vec<Option<Recording>>, sqlx::Error> {
    let c = Columns::of(reports);
    let (lowest, highest) = range(&c.deliveries);
    let rows = sqlx::query!(
        r#"-- postgres::delivery::record_attempts::record_settled
        WITH r AS MATERIALIZED (
            SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::int[],
                $6::smallint[], $7::smallint[], $8::text[], $9::text[], $10::text[], $11::text[],
                $12::bytea[], $13::bool[])
                WITH ORDINALITY AS t(endpoint, id, token, started_at, duration_ms, outcome, status,
                    worker, url, location, detail, response, truncated, n)
        ), l AS MATERIALIZED (
            SELECT r.*, s.attempts + 1 AS number
            FROM r JOIN fencepost.settled_deliveries s ON s.endpoint = r.endpoint AND s.id = r.id
            ORDER BY s.id
            FOR NO KEY UPDATE OF s
        ), x AS MATERIALIZED (
            SELECT l.*, (
                SELECT a.number FROM fencepost.attempts a
                WHERE a.endpoint = l.endpoint AND a.delivery = l.id AND a.claim_token = l.token
                    AND a.delivery BETWEEN $14 AND $15
            ) AS reported
            FROM l
        ), counted AS (
            UPDATE fencepost.settled_deliveries s SET attempts = x.number
            FROM x
            WHERE s.endpoint = x.endpoint AND s.id = x.id AND x.reported IS NULL
        ), attempt AS (
            INSERT INTO fencepost.attempts (endpoint, delivery, claim_token, started_at,
                recorded_at, number, duration_ms, outcome, status, late, response_truncated,
                worker, url, location, detail, response)
            SELECT endpoint, id, token, started_at, statement_timestamp(), number, duration_ms,
                outcome, status, true, truncated, worker, url, location, detail, response
            FROM x
            WHERE reported IS NULL
        )
        SELECT x.number AS "number?", x.reported AS "reported?"
        FROM r LEFT JOIN x ON x.n = r.n
        ORDER BY r.n"#,
        &c.endpoints,
        &c.deliveries,
        &c.tokens,
        &c.started_at,
        &c.durations_ms,
        &c.outcomes,
        &c.statuses as &[Option<i16>],
        &c.workers as &[&str],
        &c.urls as &[&str],
        &c.locations as &[Option<&str>],
        &c.details as &[Option<&str>],
        &c.responses as &[&[u8]],
        &c.truncated,
        lowest,
        highest,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| match (row.number, row.reported) {
            (_, Some(number)) => Some(Recording::Repeated(count(number))),
            (Some(number), None) => Some(Recording::Late(count(number))),
            (None, None) => None,
        })
        .collect())
}
