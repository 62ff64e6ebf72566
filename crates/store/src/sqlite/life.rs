//! How endpoints do.

mod read_lives;

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::endpoint::circuit::{Circuit, Counts, Opening, Turn};
use domain::endpoint::{Failing, Signal, Tally};
use domain::id::{ClaimToken, EndpointKey};
use domain::operational::What;
use sqlx::FromRow;
use uuid::Uuid;

use super::SqliteStore;
use super::codec::{UnixMicros, corrupt};
use super::errors::Fault;
use super::operational::tell;
use super::writer::WriteTransaction;
use crate::life::{Life, Lives};
use crate::{StoreError, codes};

#[async_trait]
impl Lives for SqliteStore {
    async fn read_lives(&self, endpoints: &[EndpointKey]) -> Result<Vec<Life>, StoreError> {
        read_lives::read_lives(&self.readers, endpoints).await
    }
}

/// One result that took effect.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    /// The version of the endpoint that its request was made by.
    pub(super) version: i64,
    pub(super) token: ClaimToken,
    pub(super) signal: Signal,
}

/// Results that are recorded together.
#[derive(Debug, Default)]
pub(super) struct Results(BTreeMap<EndpointKey, Vec<Counted>>);

impl Results {
    pub(super) fn add(&mut self, endpoint: EndpointKey, result: Counted) {
        self.0.entry(endpoint).or_default().push(result);
    }

    /// Counts those of each endpoint on its schedule row.
    pub(super) async fn write(self, tx: &mut WriteTransaction) -> Result<(), Fault> {
        for (endpoint, results) in self.0 {
            let Some(row) = read_row(tx, endpoint).await? else { continue };
            let before = (row.failing(), row.circuit.circuit(endpoint)?);
            let (mut tally, mut probe) = (Tally::default(), None);
            for result in results.iter().filter(|result| result.version >= row.counts_from) {
                tally.count(result.signal);
                if row.circuit.circuit_probe == Some(result.token.as_uuid()) {
                    probe = Some(result.signal);
                }
            }
            let failing = Failing::after(before.0, tally, tx.now());
            if failing != before.0 {
                write_failing(tx, endpoint, failing).await?;
            }
            let mut circuit = before.1;
            let turn =
                if row.circuit_breaker { circuit.record(tally, probe, tx.now()) } else { None };
            match (turn, circuit) {
                (Some(Turn::Opened), Circuit::Open(opening)) => {
                    tell(tx, endpoint, What::EndpointFailing(opening.cause)).await?;
                }
                (Some(Turn::Closed), _) => tell(tx, endpoint, What::EndpointRecovered).await?,
                _ => {}
            }
            if circuit != before.1 {
                write_circuit(tx, endpoint, &circuit).await?;
            }
        }
        Ok(())
    }
}

/// What of a schedule row tells how the endpoint does.
#[derive(Debug, FromRow)]
struct LifeRow {
    counts_from: i64,
    failing_since: Option<UnixMicros>,
    failed_at: Option<UnixMicros>,
    circuit_breaker: bool,
    #[sqlx(flatten)]
    circuit: CircuitColumns,
}

impl LifeRow {
    fn failing(&self) -> Option<Failing> {
        let run = self.failing_since.zip(self.failed_at);
        run.map(|(since, last)| Failing { since: since.0, last: last.0 })
    }
}

/// The columns of a schedule row that a circuit is made of.
#[derive(Debug, FromRow)]
pub(super) struct CircuitColumns {
    failures_in_a_row: u32,
    window_since: Option<UnixMicros>,
    window_succeeded: u32,
    window_failed: u32,
    circuit_times: u32,
    circuit_since: Option<UnixMicros>,
    circuit_until: Option<UnixMicros>,
    circuit_cause: Option<i16>,
    circuit_probe: Option<Uuid>,
}

impl CircuitColumns {
    pub(super) fn circuit(&self, endpoint: EndpointKey) -> Result<Circuit, StoreError> {
        let bad = |column| corrupt("endpoint_schedule", column, endpoint);
        if self.circuit_times == 0 {
            return Ok(Circuit::Closed(Counts {
                in_a_row: self.failures_in_a_row,
                since: self.window_since.map(|at| at.0),
                succeeded: self.window_succeeded,
                failed: self.window_failed,
            }));
        }
        let cause = self.circuit_cause.and_then(codes::open_cause);
        Ok(Circuit::Open(Opening {
            since: self.circuit_since.ok_or_else(|| bad("circuit_since"))?.0,
            until: self.circuit_until.ok_or_else(|| bad("circuit_until"))?.0,
            times: self.circuit_times,
            cause: cause.ok_or_else(|| bad("circuit_cause"))?,
            probe: self.circuit_probe.map(ClaimToken::from_uuid),
        }))
    }
}

async fn read_row(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
) -> Result<Option<LifeRow>, Fault> {
    let row = sqlx::query_as(
        "-- sqlite::life::read_row
        SELECT counts_from, failing_since, failed_at, circuit_breaker, failures_in_a_row,
            window_since, window_succeeded, window_failed, circuit_times, circuit_since,
            circuit_until, circuit_cause, circuit_probe
        FROM endpoint_schedule WHERE endpoint = ?1",
    )
    .bind(endpoint.as_uuid())
    .fetch_optional(tx.connection())
    .await?;
    Ok(row)
}

/// Does to the endpoint's circuit what the domain says of an event.
pub(super) async fn change_circuit(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    event: impl FnOnce(&mut Circuit) + Send,
) -> Result<(), Fault> {
    let Some(row) = read_row(tx, endpoint).await? else { return Ok(()) };
    let before = row.circuit.circuit(endpoint)?;
    let mut circuit = before;
    event(&mut circuit);
    if circuit == before { Ok(()) } else { write_circuit(tx, endpoint, &circuit).await }
}

async fn write_failing(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    failing: Option<Failing>,
) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::life::write_failing
        UPDATE endpoint_schedule SET failing_since = ?2, failed_at = ?3 WHERE endpoint = ?1",
    )
    .bind(endpoint.as_uuid())
    .bind(failing.map(|run| UnixMicros(run.since)))
    .bind(failing.map(|run| UnixMicros(run.last)))
    .execute(tx.connection())
    .await?;
    Ok(())
}

pub(super) async fn write_circuit(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    circuit: &Circuit,
) -> Result<(), Fault> {
    let (counts, opening) = match circuit {
        Circuit::Closed(counts) => (*counts, None),
        Circuit::Open(opening) => (Counts::default(), Some(opening)),
    };
    sqlx::query(
        "-- sqlite::life::write_circuit
        UPDATE endpoint_schedule SET failures_in_a_row = ?2, window_since = ?3,
            window_succeeded = ?4, window_failed = ?5, circuit_times = ?6, circuit_since = ?7,
            circuit_until = ?8, circuit_cause = ?9, circuit_probe = ?10
        WHERE endpoint = ?1",
    )
    .bind(endpoint.as_uuid())
    .bind(counts.in_a_row)
    .bind(counts.since.map(UnixMicros))
    .bind(counts.succeeded)
    .bind(counts.failed)
    .bind(opening.map_or(0, |opening| opening.times))
    .bind(opening.map(|opening| UnixMicros(opening.since)))
    .bind(opening.map(|opening| UnixMicros(opening.until)))
    .bind(opening.map(|opening| codes::of_open_cause(opening.cause)))
    .bind(opening.and_then(|opening| opening.probe).map(ClaimToken::as_uuid))
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Results so far do not count any more, nor those of requests that were made by older versions.
pub(super) async fn forget_life(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::life::forget_life
        UPDATE endpoint_schedule SET failing_since = NULL, failed_at = NULL,
            counts_from = (SELECT e.version FROM endpoints e WHERE e.key = ?1)
        WHERE endpoint = ?1",
    )
    .bind(endpoint.as_uuid())
    .execute(tx.connection())
    .await?;
    write_circuit(tx, endpoint, &Circuit::default()).await
}
