//! Claims due deliveries, and what has lapsed (G1).
//!
//! * The claim *waits* for its schedule rows, in endpoint order, and *skips* deliveries that another
//!   session holds. Skipping the schedule rows left 95 % of the claims on a hot endpoint empty.
//! * Enabled, paused, held, cap and marks are read from the locked schedule row: only the row that is
//!   locked is read again after a wait, never a joined one.
//! * What is left of the endpoint's rate in the current window is read there too, and what is claimed
//!   to be sent is counted there, reclaimed deliveries included. The window begins at a multiple of its
//!   length since 1970 on the clock of the database. What is parked or abandoned is not sent and costs
//!   nothing of it.
//! * An open circuit closes the endpoint until its time is over. Then it leaves room for one delivery to be
//!   sent, the probe, and the claim that takes it keeps the circuit open for as long as its lease.
//! * Both scans run between a mark on the schedule row and now, so that dead index entries in front
//!   of the mark cost nothing. The marks follow with a grace, for what commits late; a sweep ignores
//!   them. A claim that waited while deliveries were given back cannot see those, being older, and
//!   leaves the mark of due times where the give-back put it. A mark in the future, which a clock that
//!   was set back leaves behind, counts as none.
//! * The candidates stand in MATERIALIZED parts and the update goes by `= ANY(ARRAY(…))`: written as
//!   `IN (SELECT … LIMIT n)` a nested loop claims more than n.
//! * Small payloads come with their claim, or without them where one cannot be read. They stand behind
//!   `LIMIT 1`, or the plan would be free to read all that was submitted in those hours.
//! * The commit does not wait for the disk: a claim that a crash of the server undoes is made again (ADR 27).

use std::time::Duration;

use domain::delivery::ClaimKind;
use domain::delivery::lease::{LAPSE_WINDOW, LAPSES_MAX};
use domain::id::{DeliveryId, EndpointKey, SubmissionId};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::StoreError;
use crate::delivery::{
    CLAIMED_PAYLOAD_MAX, ClaimBatch, ClaimRequest, ClaimedDelivery, LapsedDelivery, Standing,
};
use crate::new_id::{unix_millis_now, uuid_of_millis};
use crate::postgres::codec::{corrupt, count, integer};
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::submission::Payload;

/// How far the marks stay behind, for transactions that were given their time before and commit
/// after. What commits later still is found by the sweep.
const GRACE: Duration = Duration::from_secs(2);

/// How far from now, on this process's clock, lie the submissions whose payloads come with the claim.
const RECENT_MS: u64 = 12 * 60 * 60 * 1_000;

pub(in crate::postgres) async fn claim_due(
    pool: &Pool,
    retention: Duration,
    request: &ClaimRequest<'_>,
) -> Result<ClaimBatch, StoreError> {
    let failed = |error| store_error("delivery::claim_due", error);
    let claim = |payloads| after_conflict(move || claim(pool, retention, request, payloads));
    let rows = match claim(CLAIMED_PAYLOAD_MAX).await.map_err(failed) {
        // A payload that cannot be read must not hold up the claim.
        Err(StoreError::Refused { .. }) => claim(0).await.map_err(failed)?,
        answer => answer?,
    };
    batch_of(request, rows)
}

/// A claimed delivery, or an endpoint of which none was claimed.
struct ClaimRow {
    endpoint: Uuid,
    database_now: OffsetDateTime,
    open: bool,
    slots: i32,
    budget: i32,
    kind: Option<i32>,
    id: Option<Uuid>,
    submission: Option<Uuid>,
    attempts: Option<i32>,
    cycle_attempts: Option<i32>,
    lapses: Option<i32>,
    lease_ms: Option<i32>,
    payload_bytes: Option<i32>,
    lapsed_worker: Option<String>,
    webhook_id: Option<Uuid>,
    content_type: Option<String>,
    payload: Option<Vec<u8>>,
}

#[expect(clippy::too_many_lines, reason = "it is one statement")]
async fn claim(
    pool: &Pool,
    retention: Duration,
    request: &ClaimRequest<'_>,
    payload_max: u32,
) -> Result<Vec<ClaimRow>, sqlx::Error> {
    let endpoints: Vec<Uuid> = request.endpoints.iter().map(|e| e.as_uuid()).collect();
    let now = unix_millis_now();
    let recent = [now.saturating_sub(RECENT_MS), now + RECENT_MS].map(uuid_of_millis);
    // Kinds: 1 fresh, 2 reclaimed, 3 parked, 4 abandoned. `$8` is one less than the lapses that
    // abandon a delivery, since the row counts those before this one.
    sqlx::query_as!(
        ClaimRow,
        r#"-- postgres::delivery::claim_due
        WITH t AS MATERIALIZED (
            SELECT set_config('synchronous_commit', 'off', true)
        ), e AS MATERIALIZED (
            SELECT s.endpoint, s.lease_ms, s.cap - s.in_flight AS free,
                LEAST(CASE WHEN s.rate_limit IS NULL THEN 2147483647
                    WHEN s.rate_window_start >= date_bin(
                        s.rate_window_ms * interval '1 millisecond', statement_timestamp(),
                        '1970-01-01T00:00:00Z')
                        THEN GREATEST(s.rate_limit - s.rate_window_used, 0)
                    ELSE s.rate_limit END,
                    CASE WHEN s.circuit_until IS NOT NULL THEN 1 END) AS budget,
                s.given_back = (
                    SELECT p.given_back FROM fencepost.endpoint_schedule p
                    WHERE p.endpoint = s.endpoint
                ) AS undisturbed,
                CASE WHEN s.low_water > statement_timestamp() THEN '-infinity'
                    ELSE s.low_water END AS low_mark,
                CASE WHEN s.lease_low > statement_timestamp() THEN '-infinity'
                    ELSE s.lease_low END AS lease_mark,
                CASE WHEN $7 OR s.low_water > statement_timestamp() THEN '-infinity'
                    ELSE s.low_water END AS low_water,
                CASE WHEN $7 OR s.lease_low > statement_timestamp() THEN '-infinity'
                    ELSE s.lease_low END AS lease_low
            FROM t CROSS JOIN fencepost.endpoint_schedule s
            WHERE s.endpoint = ANY($1::uuid[]) AND s.enabled AND NOT s.deleted
                AND NOT s.held
                AND (s.paused_until IS NULL OR s.paused_until <= statement_timestamp())
                AND (s.circuit_until IS NULL OR s.circuit_until <= statement_timestamp())
            ORDER BY s.endpoint
            FOR NO KEY UPDATE OF s
        ), lapsed AS MATERIALIZED (
            SELECT e.endpoint, q.id, q.claimed_by AS lapsed_worker, NULL::timestamptz AS due_at,
                CASE WHEN q.lapses = 0 THEN 2
                    WHEN q.lapses >= $8::int
                        AND q.lapse_since <= statement_timestamp() - $9::float8 * interval '1 second'
                        THEN 4
                    ELSE 3 END AS kind
            FROM e CROSS JOIN LATERAL (
                SELECT d.id, d.lapses, d.lapse_since, d.claimed_by
                FROM fencepost.deliveries d
                WHERE d.endpoint = e.endpoint AND d.state = 2
                    AND d.claim_expires_at >= e.lease_low
                    AND d.claim_expires_at <= statement_timestamp()
                    AND d.cancel_requested_at IS NULL
                    AND (e.budget > 0 OR d.lapses > 0)
                ORDER BY d.claim_expires_at
                LIMIT CASE WHEN e.budget > 0 THEN LEAST($2::int, e.budget) ELSE $2::int END
                FOR NO KEY UPDATE SKIP LOCKED
            ) q
            LIMIT $3::int
        ), f AS MATERIALIZED (
            SELECT e.endpoint,
                (e.free + count(*) FILTER (WHERE l.kind > 2))::int AS slots, e.budget,
                LEAST($2::int - count(*) FILTER (WHERE l.kind = 2),
                    e.budget - count(*) FILTER (WHERE l.kind = 2),
                    e.free + count(*) FILTER (WHERE l.kind > 2))::int AS room
            FROM e LEFT JOIN lapsed l ON l.endpoint = e.endpoint
            GROUP BY e.endpoint, e.free, e.budget
        ), fresh AS MATERIALIZED (
            SELECT e.endpoint, q.id, NULL::text AS lapsed_worker, q.due_at, 1 AS kind
            FROM e JOIN f ON f.endpoint = e.endpoint CROSS JOIN LATERAL (
                SELECT d.id, d.due_at
                FROM fencepost.deliveries d
                WHERE d.endpoint = e.endpoint AND d.state = 1
                    AND d.due_at >= e.low_water AND d.due_at <= statement_timestamp()
                    AND d.cancel_requested_at IS NULL
                ORDER BY d.due_at, d.id
                LIMIT GREATEST(f.room, 0)
                FOR NO KEY UPDATE SKIP LOCKED
            ) q
            LIMIT GREATEST($3::int - (SELECT count(*) FROM lapsed WHERE kind = 2), 0)
        ), c AS MATERIALIZED (
            SELECT endpoint, id, kind, due_at, lapsed_worker FROM lapsed
            UNION ALL
            SELECT endpoint, id, kind, due_at, lapsed_worker FROM fresh
        ), u AS (
            UPDATE fencepost.deliveries d SET
                state = CASE
                    WHEN d.state = 1 OR d.lapses = 0 THEN 2
                    WHEN d.lapses >= $8::int
                        AND d.lapse_since <= statement_timestamp() - $9::float8 * interval '1 second'
                        THEN 3
                    ELSE 1 END,
                reason = CASE WHEN d.state = 2 AND d.lapses >= $8::int
                        AND d.lapse_since <= statement_timestamp() - $9::float8 * interval '1 second'
                    THEN 4 END,
                due_at = CASE
                    WHEN d.state = 1 OR d.lapses = 0 THEN d.due_at
                    WHEN d.lapses >= $8::int
                        AND d.lapse_since <= statement_timestamp() - $9::float8 * interval '1 second'
                        THEN statement_timestamp() + $10::float8 * interval '1 second'
                    ELSE statement_timestamp() + interval '1 millisecond' * (
                        SELECT p.retry_schedule_ms[
                            LEAST(d.lapses + d.cycle_attempts, cardinality(p.retry_schedule_ms))]
                        FROM fencepost.endpoints p WHERE p.key = d.endpoint) END,
                claim_token = CASE WHEN d.state = 1 OR d.lapses = 0
                    THEN $5::uuid ELSE d.claim_token END,
                claimed_by = CASE WHEN d.state = 1 OR d.lapses = 0
                    THEN $4::text ELSE d.claimed_by END,
                claim_expires_at = CASE WHEN d.state = 1 OR d.lapses = 0
                    THEN statement_timestamp() + interval '1 millisecond' * (
                        SELECT e.lease_ms FROM e WHERE e.endpoint = d.endpoint)
                    ELSE d.claim_expires_at END,
                lapses = d.lapses + (d.state = 2)::int,
                lapse_since = CASE WHEN d.state = 2
                    THEN coalesce(d.lapse_since, d.claim_expires_at) ELSE d.lapse_since END
            WHERE d.id = ANY(ARRAY(SELECT id FROM c)) AND d.state IN (1, 2)
            RETURNING d.endpoint, d.id, d.submission, d.attempts, d.cycle_attempts, d.lapses,
                d.payload_bytes
        ), x AS MATERIALIZED (
            SELECT u.endpoint, u.id, u.submission, u.attempts, u.cycle_attempts, u.lapses,
                u.payload_bytes, c.kind, c.due_at, c.lapsed_worker
            FROM u JOIN c ON c.id = u.id
        ), o AS MATERIALIZED (
            SELECT endpoint FROM fencepost.operational_endpoint WHERE one
        ), told AS (
            INSERT INTO fencepost.operational_events (kind, code, endpoint, delivery, submission)
            SELECT 4, 4, x.endpoint, x.id, x.submission
            FROM x JOIN o ON o.endpoint <> x.endpoint
            WHERE x.kind = 4
        ), sch AS (
            UPDATE fencepost.endpoint_schedule s SET
                in_flight = s.in_flight + y.slots,
                low_water = CASE WHEN y.undisturbed
                    THEN GREATEST(y.low_mark, y.due_at - $6::float8 * interval '1 second')
                    ELSE y.low_mark END,
                lease_low = CASE
                    WHEN y.lapsed < LEAST($2::int, y.budget)
                        AND (SELECT count(*) FROM lapsed) < $3::int
                    THEN GREATEST(y.lease_mark, statement_timestamp() - $6::float8 * interval '1 second')
                    ELSE y.lease_mark END,
                circuit_until = CASE WHEN s.circuit_until IS NOT NULL AND y.sent > 0
                    THEN statement_timestamp() + interval '1 millisecond' * s.lease_ms
                    ELSE s.circuit_until END,
                circuit_probe = CASE WHEN s.circuit_until IS NOT NULL AND y.sent > 0
                    THEN $5::uuid ELSE s.circuit_probe END,
                rate_window_used = CASE
                    WHEN s.rate_limit IS NULL THEN s.rate_window_used
                    WHEN s.rate_window_start >= date_bin(
                        s.rate_window_ms * interval '1 millisecond', statement_timestamp(),
                        '1970-01-01T00:00:00Z')
                        THEN s.rate_window_used + y.sent
                    ELSE y.sent END,
                rate_window_start = GREATEST(s.rate_window_start, date_bin(
                    s.rate_window_ms * interval '1 millisecond', statement_timestamp(),
                    '1970-01-01T00:00:00Z'))
            FROM (
                SELECT x.endpoint, max(x.due_at) AS due_at, e.budget, e.undisturbed, e.low_mark,
                    e.lease_mark,
                    count(*) FILTER (WHERE x.kind < 3)::int AS sent,
                    count(*) FILTER (WHERE x.kind = 1) - count(*) FILTER (WHERE x.kind > 2) AS slots,
                    count(*) FILTER (WHERE x.kind > 1) AS lapsed
                FROM x JOIN e ON e.endpoint = x.endpoint
                GROUP BY x.endpoint, e.budget, e.undisturbed, e.low_mark, e.lease_mark
            ) y
            WHERE s.endpoint = y.endpoint
        )
        SELECT r.endpoint AS "endpoint!", statement_timestamp() AS "database_now!",
            f.endpoint IS NOT NULL AS "open!", coalesce(f.slots, 0) AS "slots!",
            coalesce(f.budget, 0) AS "budget!",
            x.kind AS "kind?", x.id AS "id?", x.submission AS "submission?",
            x.attempts AS "attempts?", x.cycle_attempts AS "cycle_attempts?",
            x.lapses AS "lapses?", e.lease_ms AS "lease_ms?",
            x.payload_bytes AS "payload_bytes?", x.lapsed_worker AS "lapsed_worker?",
            p.webhook_id AS "webhook_id?", p.content_type AS "content_type?", p.payload
        FROM (SELECT DISTINCT endpoint FROM unnest($1::uuid[]) AS t(endpoint)) r
        LEFT JOIN f ON f.endpoint = r.endpoint
        LEFT JOIN e ON e.endpoint = r.endpoint
        LEFT JOIN x ON x.endpoint = r.endpoint
        LEFT JOIN LATERAL (
            SELECT b.webhook_id, b.content_type, b.payload
            FROM fencepost.submissions b
            WHERE b.endpoint = x.endpoint AND b.id = x.submission AND b.id BETWEEN $12 AND $13
                AND x.kind < 3 AND x.payload_bytes <= $11::int
            LIMIT 1
        ) p ON true"#,
        &endpoints,
        integer(request.per_endpoint),
        integer(request.total),
        request.worker,
        request.token.as_uuid(),
        GRACE.as_secs_f64(),
        request.sweep,
        integer(LAPSES_MAX.saturating_sub(1)),
        LAPSE_WINDOW.as_secs_f64(),
        retention.as_secs_f64(),
        integer(payload_max),
        recent[0],
        recent[1],
    )
    .fetch_all(pool)
    .await
}

fn kind_of(row: &ClaimRow) -> Result<Option<ClaimKind>, StoreError> {
    match row.kind {
        None => Ok(None),
        Some(1) => Ok(Some(ClaimKind::Fresh)),
        Some(2) => Ok(Some(ClaimKind::Reclaimed)),
        Some(3) => Ok(Some(ClaimKind::Parked)),
        Some(4) => Ok(Some(ClaimKind::Abandoned)),
        Some(_) => Err(corrupt("deliveries", "state", row.endpoint)),
    }
}

fn batch_of(request: &ClaimRequest<'_>, rows: Vec<ClaimRow>) -> Result<ClaimBatch, StoreError> {
    let mut batch = ClaimBatch {
        claimed: Vec::new(),
        set_aside: Vec::new(),
        endpoints: Vec::new(),
        database_now: rows.first().map_or(OffsetDateTime::UNIX_EPOCH, |row| row.database_now),
    };
    let mut seen: Vec<Seen> = Vec::new();
    for row in rows {
        let endpoint = EndpointKey::from_uuid(row.endpoint);
        let kind = kind_of(&row)?;
        let index = seen.iter().position(|s| s.endpoint == endpoint).unwrap_or_else(|| {
            let (open, slots, budget) = (row.open, row.slots, count(row.budget));
            seen.push(Seen { endpoint, open, slots, budget, fresh: 0, owned: 0, lapsed: 0 });
            seen.len() - 1
        });
        if let (Some(seen), Some(kind)) = (seen.get_mut(index), kind) {
            seen.fresh += i32::from(kind == ClaimKind::Fresh);
            seen.owned += u32::from(kind.is_owned());
            seen.lapsed += u32::from(kind != ClaimKind::Fresh);
        }
        let (Some(kind), Some(id), Some(submission)) = (kind, row.id, row.submission) else {
            continue;
        };
        let delivery = DeliveryId::from_uuid(id);
        let submission = SubmissionId::from_uuid(submission);
        let payload = match (row.webhook_id, row.content_type, row.payload) {
            (Some(webhook_id), Some(content_type), Some(payload)) => {
                Some(Payload { submission, webhook_id, content_type, payload: payload.into() })
            }
            _ => None,
        };
        let lapses = count(row.lapses.unwrap_or(0));
        if kind.is_owned() {
            batch.claimed.push(ClaimedDelivery {
                endpoint,
                delivery,
                submission,
                kind,
                lapsed_worker: row.lapsed_worker,
                attempts: count(row.attempts.unwrap_or(0)),
                cycle_attempts: count(row.cycle_attempts.unwrap_or(0)),
                lapses,
                lease: Duration::from_millis(count(row.lease_ms.unwrap_or(0)).into()),
                payload_bytes: count(row.payload_bytes.unwrap_or(0)),
                payload,
            });
        } else {
            let lapsed_worker = row.lapsed_worker;
            batch.set_aside.push(LapsedDelivery {
                endpoint,
                delivery,
                kind,
                lapsed_worker,
                lapses,
            });
        }
    }
    let cut = batch.claimed.len() >= request.total as usize;
    batch.endpoints = seen.iter().map(|s| (s.endpoint, s.standing(request, cut))).collect();
    Ok(batch)
}

/// What the rows tell of one endpoint.
struct Seen {
    endpoint: EndpointKey,
    open: bool,
    slots: i32,
    budget: u32,
    fresh: i32,
    owned: u32,
    lapsed: u32,
}

impl Seen {
    fn standing(&self, request: &ClaimRequest<'_>, cut: bool) -> Standing {
        // All that were looked for lapsed: there may be more, even if none of them is to be sent.
        let looked_for = match self.budget {
            0 => request.per_endpoint,
            budget => request.per_endpoint.min(budget),
        };
        let more_lapsed = self.lapsed >= looked_for.min(request.total);
        if !self.open {
            Standing::Closed
        } else if self.fresh >= self.slots {
            Standing::AtCap
        } else if self.owned >= self.budget {
            Standing::Limited
        } else if cut || more_lapsed || self.owned >= request.per_endpoint {
            Standing::More
        } else {
            Standing::Empty
        }
    }
}
