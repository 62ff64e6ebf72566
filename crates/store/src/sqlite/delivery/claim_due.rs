//! Claims due deliveries, and what has lapsed.
//!
//! Endpoints are served in the order of the request. At each, what has lapsed comes first: it holds
//! a slot already, or frees one. Then as many due deliveries follow as slots are free, the longest
//! due first.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::delivery::ClaimKind;
use domain::delivery::retry::RetrySchedule;
use domain::endpoint::circuit::Circuit;
use domain::id::{ClaimToken, DeliveryId, EndpointKey, SubmissionId};
use domain::rate_limit::RateLimit;
use sqlx::FromRow;
use time::OffsetDateTime;

use super::{DeliveryRow, move_in_flight, tell_failure, write_row};
use crate::StoreError;
use crate::delivery::{ClaimBatch, ClaimRequest, ClaimedDelivery, LapsedDelivery, Standing};
use crate::sqlite::codec::{self, UnixMicros, corrupt};
use crate::sqlite::errors::Fault;
use crate::sqlite::life::{CircuitColumns, change_circuit};
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(in crate::sqlite) async fn claim_due(
    writer: &Writer,
    retention: Duration,
    request: &ClaimRequest<'_>,
) -> Result<ClaimBatch, StoreError> {
    // `sweep` asks for nothing here: no mark hides what committed late.
    let claim = Claim {
        per_endpoint: request.per_endpoint,
        total: request.total,
        worker: request.worker.to_owned(),
        token: request.token,
        retention,
    };
    let mut endpoints = request.endpoints.to_vec();
    let mut seen = BTreeSet::new();
    endpoints.retain(|endpoint| seen.insert(*endpoint));
    writer
        .run("delivery::claim_due", move |tx| {
            Box::pin(async move {
                let mut batch = ClaimBatch {
                    claimed: Vec::new(),
                    set_aside: Vec::new(),
                    endpoints: Vec::with_capacity(endpoints.len()),
                    database_now: tx.now(),
                };
                for endpoint in endpoints {
                    let standing = claim.serve(tx, endpoint, &mut batch).await?;
                    batch.endpoints.push((endpoint, standing));
                }
                Ok(batch)
            })
        })
        .await
}

/// What a [`ClaimRequest`] asks for, without its list of endpoints.
struct Claim {
    per_endpoint: u32,
    total: u32,
    worker: String,
    token: ClaimToken,
    retention: Duration,
}

/// What was done with deliveries of one endpoint.
#[derive(Default)]
struct Tally {
    fresh: u32,
    reclaimed: u32,
    set_aside: u32,
}

impl Tally {
    fn count(&mut self, kind: ClaimKind) {
        match kind {
            ClaimKind::Fresh => self.fresh += 1,
            ClaimKind::Reclaimed => self.reclaimed += 1,
            ClaimKind::Parked | ClaimKind::Abandoned => self.set_aside += 1,
        }
    }

    /// Slots taken, less those that were freed. What is reclaimed brings its own.
    fn slots(&self) -> i64 {
        i64::from(self.fresh) - i64::from(self.set_aside)
    }
}

impl Claim {
    async fn serve(
        &self,
        tx: &mut WriteTransaction,
        endpoint: EndpointKey,
        batch: &mut ClaimBatch,
    ) -> Result<Standing, Fault> {
        let Some(schedule) = read_schedule(tx, endpoint).await? else {
            return Ok(Standing::Closed);
        };
        let admitted = schedule.circuit.admits(tx.now());
        if admitted == 0 {
            return Ok(Standing::Closed);
        }
        let claimed = u32::try_from(batch.claimed.len()).unwrap_or(u32::MAX);
        let asked = self.per_endpoint.min(self.total.saturating_sub(claimed));
        let mut tally = Tally::default();

        let budget = schedule.budget(tx.now()).min(admitted);
        let limit = if budget > 0 { asked.min(budget) } else { asked };
        let lapsed = read_lapsed(tx, endpoint, limit, budget > 0).await?;
        // All that were looked for lapsed: there may be more, even if none of them is to be sent.
        let more_lapsed = u32::try_from(lapsed.len()) == Ok(limit);
        for row in lapsed {
            tally.count(self.take(tx, &schedule, row, batch).await?);
        }
        let free = schedule.cap - schedule.in_flight - tally.slots();
        let room = free.clamp(0, i64::from(asked.min(budget).saturating_sub(tally.reclaimed)));
        for row in read_due(tx, endpoint, room).await? {
            tally.count(self.take(tx, &schedule, row, batch).await?);
        }

        move_in_flight(tx, endpoint, tally.slots()).await?;
        let sent = tally.fresh + tally.reclaimed;
        if let Some(rate) = schedule.rate {
            count_in_window(tx, endpoint, rate, &schedule, sent).await?;
        }
        if sent > 0 {
            let (token, lease, now) = (self.token, schedule.lease, tx.now());
            change_circuit(tx, endpoint, |circuit| circuit.claim(token, lease, now)).await?;
        }
        Ok(if schedule.in_flight + tally.slots() >= schedule.cap {
            Standing::AtCap
        } else if sent >= budget {
            Standing::Limited
        } else if more_lapsed || sent == asked {
            Standing::More
        } else {
            Standing::Empty
        })
    }

    /// Claims one delivery that was read as claimable, and adds it to the batch.
    async fn take(
        &self,
        tx: &mut WriteTransaction,
        schedule: &Schedule,
        mut row: DeliveryRow,
        batch: &mut ClaimBatch,
    ) -> Result<ClaimKind, Fault> {
        let mut delivery = row.delivery()?;
        let kind = delivery
            .claim(self.token, schedule.lease, &schedule.retries, self.retention, tx.now())
            .map_err(|_| corrupt("deliveries", "state", row.id))?;
        let claimed_before_by = row.claimed_by.clone();
        if kind.is_owned() {
            row.claimed_by = Some(self.worker.clone());
        }
        if kind != ClaimKind::Fresh {
            row.lapses += 1;
        }
        write_row(tx, &row, &delivery).await?;
        tell_failure(tx, &row, &delivery).await?;

        let (endpoint, id) = (EndpointKey::from_uuid(row.endpoint), DeliveryId::from_uuid(row.id));
        if kind.is_owned() {
            batch.claimed.push(ClaimedDelivery {
                endpoint,
                delivery: id,
                submission: SubmissionId::from_uuid(row.submission),
                kind,
                lapsed_worker: claimed_before_by.filter(|_| kind == ClaimKind::Reclaimed),
                attempts: row.attempts,
                cycle_attempts: row.cycle_attempts,
                lapses: row.lapses,
                lease: schedule.lease,
                payload_bytes: row.payload_bytes,
                payload: None,
            });
        } else {
            batch.set_aside.push(LapsedDelivery {
                endpoint,
                delivery: id,
                kind,
                lapsed_worker: claimed_before_by,
                lapses: row.lapses,
            });
        }
        Ok(kind)
    }
}

/// What a claim has to know of an endpoint that is open for it.
struct Schedule {
    in_flight: i64,
    cap: i64,
    lease: Duration,
    retries: RetrySchedule,
    rate: Option<RateLimit>,
    window_start: Option<OffsetDateTime>,
    window_used: u32,
    circuit: Circuit,
}

impl Schedule {
    /// How many more may be sent in the window that `now` is in.
    fn budget(&self, now: OffsetDateTime) -> u32 {
        self.rate.map_or(u32::MAX, |rate| {
            rate.units().saturating_sub(rate.used(now, self.window_start, self.window_used))
        })
    }
}

#[derive(FromRow)]
struct ScheduleRow {
    in_flight: i64,
    cap: i64,
    lease_ms: u32,
    retry_schedule_ms: String,
    rate_limit: Option<i64>,
    rate_window_ms: Option<i64>,
    rate_window_start: Option<UnixMicros>,
    rate_window_used: u32,
    #[sqlx(flatten)]
    circuit: CircuitColumns,
}

/// Answers none if the endpoint is unknown, paused, disabled or deleted.
async fn read_schedule(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
) -> Result<Option<Schedule>, Fault> {
    let row: Option<ScheduleRow> = sqlx::query_as(
        "-- sqlite::delivery::claim_due::read_schedule
        SELECT s.in_flight, s.cap, s.lease_ms, e.retry_schedule_ms, s.rate_limit, s.rate_window_ms,
            s.rate_window_start, s.rate_window_used, s.failures_in_a_row, s.window_since,
            s.window_succeeded, s.window_failed, s.circuit_times, s.circuit_since, s.circuit_until,
            s.circuit_cause, s.circuit_probe
        FROM endpoint_schedule s
        JOIN endpoints e ON e.key = s.endpoint
        WHERE s.endpoint = ?1 AND s.enabled AND NOT s.deleted
            AND NOT s.held
            AND (s.paused_until IS NULL OR s.paused_until <= ?2)",
    )
    .bind(endpoint.as_uuid())
    .bind(UnixMicros(tx.now()))
    .fetch_optional(tx.connection())
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Schedule {
        in_flight: row.in_flight,
        cap: row.cap,
        lease: Duration::from_millis(row.lease_ms.into()),
        retries: codec::retry_schedule(&row.retry_schedule_ms, endpoint.as_uuid())?,
        rate: row.rate_limit.zip(row.rate_window_ms).and_then(|(units, ms)| codec::rate(units, ms)),
        window_start: row.rate_window_start.map(|UnixMicros(start)| start),
        window_used: row.rate_window_used,
        circuit: row.circuit.circuit(endpoint)?,
    }))
}

/// Counts what is sent in the window of now.
async fn count_in_window(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    rate: RateLimit,
    schedule: &Schedule,
    sent: u32,
) -> Result<(), Fault> {
    if sent == 0 {
        return Ok(());
    }
    let used = rate.used(tx.now(), schedule.window_start, schedule.window_used);
    let start = rate.window_start(tx.now());
    sqlx::query(
        "-- sqlite::delivery::claim_due::count_in_window
        UPDATE endpoint_schedule SET rate_window_start = ?2, rate_window_used = ?3
        WHERE endpoint = ?1",
    )
    .bind(endpoint.as_uuid())
    .bind(UnixMicros(schedule.window_start.map_or(start, |before| before.max(start))))
    .bind(used.saturating_add(sent))
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Processing deliveries that have outlived their lease, the longest lapsed first; only those that are
/// not to be sent again at once, if nothing may be sent.
async fn read_lapsed(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    limit: u32,
    may_send: bool,
) -> Result<Vec<DeliveryRow>, Fault> {
    let rows = sqlx::query_as(
        "-- sqlite::delivery::claim_due::read_lapsed
        SELECT endpoint, id, submission, claim_token, due_at, claim_expires_at, lapse_since,
            cancel_requested_at, attempts, cycle_attempts, lapses, payload_bytes, state, reason,
            claimed_by
        FROM deliveries
        WHERE endpoint = ?1 AND state = 2 AND claim_expires_at <= ?2
            AND cancel_requested_at IS NULL AND (?4 OR lapses > 0)
        ORDER BY claim_expires_at, id
        LIMIT ?3",
    )
    .bind(endpoint.as_uuid())
    .bind(UnixMicros(tx.now()))
    .bind(limit)
    .bind(may_send)
    .fetch_all(tx.connection())
    .await?;
    Ok(rows)
}

/// Pending deliveries that are due, the longest due first.
async fn read_due(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    limit: i64,
) -> Result<Vec<DeliveryRow>, Fault> {
    let rows = sqlx::query_as(
        "-- sqlite::delivery::claim_due::read_due
        SELECT endpoint, id, submission, claim_token, due_at, claim_expires_at, lapse_since,
            cancel_requested_at, attempts, cycle_attempts, lapses, payload_bytes, state, reason,
            claimed_by
        FROM deliveries
        WHERE endpoint = ?1 AND state = 1 AND due_at <= ?2 AND cancel_requested_at IS NULL
        ORDER BY due_at, id
        LIMIT ?3",
    )
    .bind(endpoint.as_uuid())
    .bind(UnixMicros(tx.now()))
    .bind(limit)
    .fetch_all(tx.connection())
    .await?;
    Ok(rows)
}
