//! Records results of deliveries that are owed or replayable, in one statement.
//!
//! * Deliveries are locked in id order, then their schedule rows in endpoint order: the first order
//!   that two batches could disagree in would deadlock them.
//! * The fence is `claim_token = token` and nothing else: not the state, not the lease. A parked or
//!   abandoned delivery still carries its token, so its holder's report counts.
//! * The number is taken from the row's counter under its lock.
//! * A slot is freed only by a fenced report of a processing row: a parked row has given its back.
//! * What results tell of their endpoint is counted in the same write of the schedule row, as
//!   [`Failing::after`](domain::endpoint::Failing::after) has it: only fenced ones, and only of requests
//!   that were made by the configuration that counts. The same goes for the circuit breaker: it does what
//!   [`Circuit::record`](domain::endpoint::circuit::Circuit::record) says.
//! * A missing schedule row loses nothing: it is joined from outside.

use std::time::Duration;

use domain::endpoint::circuit;

use crate::postgres::pool::Pool;

use super::columns::Columns;
use crate::delivery::{Recording, Report};
use crate::postgres::codec::{count, integer, range};

/// Answers none for a delivery that it did not find.
#[expect(clippy::too_many_lines, reason = "it is one statement")]
pub(super) async fn record_live(
    pool: &Pool,
    retention: Duration,
    reports: &[&Report],
) -> Result<Vec<Option<Recording>>, sqlx::Error> {
    let c = Columns::of(reports);
    let (lowest, highest) = range(&c.deliveries);
    let rows = sqlx::query!(
        r#"-- postgres::delivery::record_attempts::record_live
        WITH r AS MATERIALIZED (
            SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::smallint[], $5::float8[],
                $6::smallint[], $7::timestamptz[], $8::int[], $9::smallint[], $10::smallint[],
                $11::text[], $12::text[], $13::text[], $14::text[], $15::bytea[], $16::bool[],
                $18::bigint[], $19::smallint[])
                WITH ORDINALITY AS t(endpoint, id, token, verdict, delay, reason, started_at,
                    duration_ms, outcome, status, worker, url, location, detail, response,
                    truncated, version, signal, n)
        ), l AS MATERIALIZED (
            SELECT d.endpoint, d.id, d.submission, d.claim_token, d.due_at, d.attempts,
                d.cycle_attempts, d.payload_bytes, d.state, d.claimed_by, d.cancel_requested_at
            FROM fencepost.deliveries d
            WHERE d.id = ANY($2::uuid[])
            ORDER BY d.id
            FOR NO KEY UPDATE
        ), sl AS MATERIALIZED (
            SELECT s.endpoint, s.deleted, s.counts_from, s.circuit_breaker, s.failures_in_a_row,
                s.circuit_until, s.circuit_probe,
                CASE WHEN s.window_since > statement_timestamp() - $20::float8 * interval '1 second'
                    THEN s.window_since END AS window_since,
                s.window_succeeded, s.window_failed
            FROM fencepost.endpoint_schedule s
            WHERE s.endpoint = ANY($1::uuid[]) AND (SELECT count(*) FROM l) >= 0
            ORDER BY s.endpoint
            FOR NO KEY UPDATE
        ), p AS MATERIALIZED (
            SELECT r.*, l.submission, l.attempts + 1 AS number, l.cycle_attempts, l.payload_bytes,
                l.state, l.claimed_by, (l.claim_token = r.token) IS TRUE AS fenced,
                CASE WHEN r.version >= sl.counts_from THEN r.signal END AS counted,
                r.token = sl.circuit_probe AS is_probe,
                CASE WHEN sl.deleted THEN 22::smallint
                    WHEN l.state = 2 AND l.cancel_requested_at IS NOT NULL THEN 21::smallint
                    END AS called_off,
                CASE WHEN (l.claim_token = r.token) IS NOT TRUE THEN (
                    SELECT a.number FROM fencepost.attempts a
                    WHERE a.endpoint = r.endpoint AND a.delivery = r.id AND a.claim_token = r.token
                        AND a.delivery BETWEEN $26 AND $27
                ) END AS reported
            FROM r
            JOIN l ON l.id = r.id AND l.endpoint = r.endpoint
            LEFT JOIN sl ON sl.endpoint = l.endpoint
        ), x AS MATERIALIZED (
            SELECT p.*, CASE WHEN p.verdict = 1 THEN 4
                WHEN p.called_off IS NOT NULL THEN 5
                WHEN p.verdict = 2 THEN 1 ELSE 3 END AS next_state
            FROM p
        ), gone AS (
            DELETE FROM fencepost.deliveries d
            WHERE d.id = ANY(ARRAY(SELECT id FROM x WHERE fenced AND next_state IN (4, 5)))
            RETURNING d.id
        ), settled AS (
            INSERT INTO fencepost.settled_deliveries (endpoint, id, submission, settled_at,
                attempts, cycle_attempts, payload_bytes, state, reason, claimed_by)
            SELECT x.endpoint, x.id, x.submission, statement_timestamp(), x.number,
                x.cycle_attempts + 1, x.payload_bytes, x.next_state,
                CASE WHEN x.next_state = 5 THEN x.called_off END, x.claimed_by
            FROM x JOIN gone ON gone.id = x.id
        ), kept AS (
            UPDATE fencepost.deliveries d SET
                attempts = x.number,
                cycle_attempts = d.cycle_attempts + x.fenced::int,
                state = CASE WHEN x.fenced THEN x.next_state ELSE d.state END,
                reason = CASE WHEN NOT x.fenced THEN d.reason
                    WHEN x.next_state = 3 THEN x.reason END,
                due_at = CASE WHEN NOT x.fenced THEN d.due_at
                    WHEN x.next_state = 3
                        THEN statement_timestamp() + $17::float8 * interval '1 second'
                    ELSE statement_timestamp() + x.delay * interval '1 second' END,
                claim_token = CASE WHEN x.fenced THEN NULL ELSE d.claim_token END,
                lapses = CASE WHEN x.fenced THEN 0 ELSE d.lapses END,
                lapse_since = CASE WHEN x.fenced THEN NULL ELSE d.lapse_since END
            FROM x
            WHERE d.id = x.id AND d.endpoint = x.endpoint AND x.reported IS NULL
                AND NOT (x.fenced AND x.next_state IN (4, 5))
        ), attempt AS (
            INSERT INTO fencepost.attempts (endpoint, delivery, claim_token, started_at,
                recorded_at, number, duration_ms, outcome, status, late, response_truncated,
                worker, url, location, detail, response)
            SELECT endpoint, id, token, started_at, statement_timestamp(), number, duration_ms,
                outcome, status, NOT fenced, truncated, worker, url, location, detail, response
            FROM x
            WHERE reported IS NULL
        ), y AS MATERIALIZED (
            SELECT endpoint, count(*) FILTER (WHERE state = 2)::int AS freed,
                count(*) FILTER (WHERE counted = 1)::int AS succeeded,
                count(*) FILTER (WHERE counted = 2)::int AS failed,
                max(counted) FILTER (WHERE is_probe) AS probed
            FROM x WHERE fenced GROUP BY endpoint
        ), w AS MATERIALIZED (
            SELECT y.*, sl.circuit_until IS NOT NULL AS open,
                sl.circuit_breaker AND sl.circuit_until IS NULL AND y.succeeded + y.failed > 0
                    AS counts,
                CASE WHEN y.succeeded > 0 THEN 0 ELSE sl.failures_in_a_row + y.failed END AS in_a_row,
                coalesce(sl.window_since, statement_timestamp()) AS since,
                CASE WHEN sl.window_since IS NULL THEN 0 ELSE sl.window_succeeded END + y.succeeded
                    AS in_window_succeeded,
                CASE WHEN sl.window_since IS NULL THEN 0 ELSE sl.window_failed END + y.failed
                    AS in_window_failed
            FROM y JOIN sl ON sl.endpoint = y.endpoint
        ), z AS MATERIALIZED (
            SELECT w.*, CASE
                    WHEN NOT counts OR failed = 0 THEN NULL
                    WHEN in_a_row >= $21::int THEN 1::smallint
                    WHEN in_window_succeeded + in_window_failed >= $22::int
                        AND in_window_failed * 100 >= (in_window_succeeded + in_window_failed) * $23::int
                        THEN 2::smallint END AS opened_by,
                open AND probed IS NOT DISTINCT FROM 1 AS closes,
                open AND probed IN (0, 2) AS reopens
            FROM w
        ), o AS MATERIALIZED (
            SELECT endpoint FROM fencepost.operational_endpoint WHERE one
        ), told AS (
            INSERT INTO fencepost.operational_events (kind, code, endpoint, delivery, submission)
            SELECT v.kind, v.code, v.endpoint, v.delivery, v.submission
            FROM (
                SELECT 4::smallint AS kind, x.reason AS code, x.endpoint, x.id AS delivery, x.submission
                FROM x WHERE x.fenced AND x.next_state = 3
                UNION ALL
                SELECT CASE WHEN z.closes THEN 3 ELSE 2 END, z.opened_by, z.endpoint, NULL, NULL
                FROM z WHERE z.closes OR z.opened_by IS NOT NULL
            ) v
            JOIN o ON o.endpoint <> v.endpoint
        ), slots AS (
            UPDATE fencepost.endpoint_schedule s SET in_flight = s.in_flight - z.freed,
                failing_since = CASE
                    WHEN z.succeeded > 0 THEN NULL
                    WHEN z.failed = 0 THEN s.failing_since
                    WHEN statement_timestamp() < s.failing_since + interval '24 hours' * (2 + floor(
                        extract(epoch FROM s.failed_at - s.failing_since) / 86400))::int
                        THEN s.failing_since
                    ELSE statement_timestamp() END,
                failed_at = CASE
                    WHEN z.succeeded > 0 THEN NULL
                    WHEN z.failed = 0 THEN s.failed_at
                    ELSE statement_timestamp() END,
                failures_in_a_row = CASE WHEN z.opened_by IS NOT NULL THEN 0
                    WHEN z.counts THEN z.in_a_row ELSE s.failures_in_a_row END,
                window_since = CASE WHEN z.opened_by IS NOT NULL THEN NULL
                    WHEN z.counts THEN z.since ELSE s.window_since END,
                window_succeeded = CASE WHEN z.opened_by IS NOT NULL THEN 0
                    WHEN z.counts THEN z.in_window_succeeded ELSE s.window_succeeded END,
                window_failed = CASE WHEN z.opened_by IS NOT NULL THEN 0
                    WHEN z.counts THEN z.in_window_failed ELSE s.window_failed END,
                circuit_times = CASE WHEN z.opened_by IS NOT NULL THEN 1 WHEN z.closes THEN 0
                    ELSE s.circuit_times + coalesce(z.reopens AND z.probed = 2, false)::int END,
                circuit_since = CASE WHEN z.opened_by IS NOT NULL THEN statement_timestamp()
                    WHEN NOT z.closes THEN s.circuit_since END,
                circuit_until = CASE
                    WHEN z.opened_by IS NOT NULL OR z.reopens
                        THEN statement_timestamp() + interval '1 second' * LEAST($25::float8,
                            $24::float8 * 2 ^ LEAST(16, GREATEST(
                                s.circuit_times + (z.reopens IS TRUE AND z.probed = 2)::int - 1, 0)))
                    WHEN NOT z.closes THEN s.circuit_until END,
                circuit_cause = CASE WHEN z.opened_by IS NOT NULL THEN z.opened_by
                    WHEN NOT z.closes THEN s.circuit_cause END,
                circuit_probe = CASE WHEN NOT z.closes AND z.reopens IS NOT TRUE
                    THEN s.circuit_probe END
            FROM z
            WHERE s.endpoint = z.endpoint
        )
        SELECT x.number AS "number?", x.fenced AS "fenced?", x.reported AS "reported?"
        FROM r LEFT JOIN x ON x.n = r.n
        ORDER BY r.n"#,
        &c.endpoints,
        &c.deliveries,
        &c.tokens,
        &c.verdicts,
        &c.delays_seconds,
        &c.reasons as &[Option<i16>],
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
        retention.as_secs_f64(),
        &c.versions,
        &c.signals,
        circuit::WINDOW.as_secs_f64(),
        integer(circuit::IN_A_ROW_MAX),
        integer(circuit::RESULTS_MIN),
        integer(circuit::FAILED_PERCENT),
        circuit::OPEN_FIRST.as_secs_f64(),
        circuit::OPEN_MAX.as_secs_f64(),
        lowest,
        highest,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| match (row.number, row.reported) {
            (_, Some(number)) => Some(Recording::Repeated(count(number))),
            (Some(number), None) if row.fenced == Some(true) => {
                Some(Recording::Fenced(count(number)))
            }
            (Some(number), None) => Some(Recording::Late(count(number))),
            (None, None) => None,
        })
        .collect())
}
