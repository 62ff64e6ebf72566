//! Claim and record, on the store's own statements, as history and backlog grow, and while another
//! session holds an old snapshot.
//!
//! Sizes follow one another and are measured as often as there are rounds: filling millions of rows three
//! times over would take most of the time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use domain::delivery::{Outcome, Verdict};
use domain::id::EndpointKey;
use store::Store;
use store::delivery::{ClaimRequest, Evidence, Report};

use super::arithmetic::{each, median, of_count};
use super::database::{Backlog, Database};
use super::figures::{Figures, Wanted};
use super::{Context, Scenario};

const ENDPOINTS: usize = 100;
const URL: &str = "http://127.0.0.1/";
const PAYLOAD: &[u8] = b"{}";
/// The smallest size, which the others are compared with.
const SMALLEST: u64 = 10_000;
/// The sizes after it, as far as the plan goes.
const LARGER: [u64; 2] = [1_000_000, 10_000_000];
/// What one claim asks for: the worker's own defaults.
const PER_ENDPOINT: u32 = 16;
const TOTAL: u32 = 128;
const ENDPOINTS_PER_CLAIM: usize = 8;
/// How many rows one measurement claims and records: less than the smallest backlog.
const ROWS_MEASURED: u64 = 2_560;
const GROWTH_MAX: f64 = 1.25;
/// Of the rows of the largest size, so many are churned while a snapshot is held.
const CHURNED: u64 = 10;
const THROUGHPUT_MIN: f64 = 0.6;
const BUFFERS_MAX: f64 = 3.0;

/// What claiming and recording some rows cost.
#[derive(Debug, Clone, Copy)]
struct Cost {
    claim_micros: f64,
    record_micros: f64,
    /// Of the server, where it can be seen.
    cpu_micros: Option<f64>,
    buffers: f64,
    per_second: f64,
}

pub(super) async fn run(context: &Context<'_>, figures: &mut Figures) -> anyhow::Result<()> {
    let database = context.database.as_ref().context("it needs PostgreSQL")?;
    let endpoints = context.stage.endpoints(ENDPOINTS, URL).await?;
    let endpoints: Vec<EndpointKey> = endpoints.iter().map(|endpoint| endpoint.key).collect();
    let rows_max = context.plan.rows;
    let sizes = [SMALLEST].into_iter().chain(LARGER.into_iter().filter(|size| *size <= rows_max));
    let mut smallest: Option<Vec<Cost>> = None;
    for size in sizes {
        context.tell(Scenario::Backlog, 0, &format!("{size} rows of history and of backlog"));
        database.clear().await?;
        database.fill_history(&endpoints, size).await?;
        let backlog = Backlog { endpoints: &endpoints, count: size, payload: PAYLOAD };
        database.fill(backlog).await?;
        database.vacuum().await?;
        let mut costs = Vec::new();
        for round in 0..context.plan.rounds {
            context.tell(Scenario::Backlog, round, &format!("claim and record at {size} rows"));
            if size == SMALLEST {
                // So small a backlog would be used up.
                let count = ROWS_MEASURED;
                database.fill(Backlog { endpoints: &endpoints, count, payload: PAYLOAD }).await?;
            }
            let cost = measure(context, database, &endpoints, ROWS_MEASURED).await?;
            add(figures, &format!("{size} rows"), cost);
            costs.push(cost);
        }
        match &smallest {
            None => smallest = Some(costs),
            Some(smallest) => compare(figures, size, smallest, &costs),
        }
    }
    under_an_old_snapshot(context, figures, database, &endpoints).await
}

fn add(figures: &mut Figures, case: &str, cost: Cost) {
    figures.add(format!("{case}: claim"), "µs each", cost.claim_micros);
    figures.add(format!("{case}: record"), "µs each", cost.record_micros);
    figures.add_if(format!("{case}: CPU of PostgreSQL"), "µs each", cost.cpu_micros);
    figures.add(format!("{case}: buffers"), "each", cost.buffers);
}

fn compare(figures: &mut Figures, size: u64, smallest: &[Cost], costs: &[Cost]) {
    let wanted = if size == LARGER[1] { Wanted::AtMost(GROWTH_MAX) } else { Wanted::Told };
    let cpu = |cost: &Cost| cost.cpu_micros;
    let buffers = |cost: &Cost| Some(cost.buffers);
    for (name, times) in
        [("CPU", growth(smallest, costs, cpu)), ("buffers", growth(smallest, costs, buffers))]
    {
        if let Some(times) = times {
            let name = format!("{name} for each at {size} rows, of the same at {SMALLEST}");
            figures.target(name, "x", wanted, times);
        }
    }
}

/// The median of a cost, as a multiple of the median of another.
fn growth(from: &[Cost], to: &[Cost], what: impl Fn(&Cost) -> Option<f64>) -> Option<f64> {
    let of = |costs: &[Cost]| median(&costs.iter().filter_map(&what).collect::<Vec<_>>());
    Some(of(to)? / of(from)?)
}

/// Claims and records so many, one statement after the other on one session, through the store.
async fn measure(
    context: &Context<'_>,
    database: &Database,
    endpoints: &[EndpointKey],
    rows: u64,
) -> anyhow::Result<Cost> {
    let sessions = database.sessions_of_the_store().await?;
    let store = context.stage.lone_store().await?;
    let (cpu, buffers) = (database.used(), database.buffers().await?);
    let began = Instant::now();
    let mut moved = Moved::default();
    let mut turn = 0;
    while moved.rows < rows {
        let at = turn * ENDPOINTS_PER_CLAIM % endpoints.len();
        let due: Vec<EndpointKey> =
            endpoints.iter().cycle().skip(at).take(ENDPOINTS_PER_CLAIM).copied().collect();
        turn += 1;
        move_some(&store, &due, &mut moved).await?;
        anyhow::ensure!(turn < endpoints.len() * 100, "the backlog is used up");
    }
    let elapsed = began.elapsed();
    let cpu = cpu.zip(database.used());
    let cpu_micros = cpu.map(|(from, to)| each(micros(to.saturating_sub(from)), moved.rows));
    // A session tells what it touched when it ends.
    drop(store);
    database.wait_for_sessions_of_the_store(sessions).await?;
    let touched = database.buffers().await?.saturating_sub(buffers);
    Ok(Cost {
        claim_micros: each(micros(moved.claiming), moved.rows),
        record_micros: each(micros(moved.recording), moved.rows),
        cpu_micros,
        buffers: each(of_count(touched), moved.rows),
        per_second: of_count(moved.rows) / elapsed.as_secs_f64(),
    })
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[derive(Debug, Default)]
struct Moved {
    rows: u64,
    claiming: Duration,
    recording: Duration,
}

async fn move_some(
    store: &Arc<dyn Store>,
    due: &[EndpointKey],
    moved: &mut Moved,
) -> anyhow::Result<()> {
    let token = store::new_id::claim_token();
    let request = ClaimRequest {
        endpoints: due,
        per_endpoint: PER_ENDPOINT,
        total: TOTAL,
        worker: "bench",
        token,
        sweep: false,
    };
    let began = Instant::now();
    let batch = store.claim_due(&request).await?;
    moved.claiming += began.elapsed();
    let reports: Vec<Report> = batch
        .claimed
        .iter()
        .map(|claimed| Report {
            endpoint: claimed.endpoint,
            delivery: claimed.delivery,
            token,
            version: 1,
            worker: "bench".to_owned(),
            started_at: batch.database_now,
            duration: Duration::from_millis(1),
            outcome: Outcome::Answered { status: 204, retry_after: None },
            verdict: Verdict::Delivered,
            evidence: Evidence { url: URL.to_owned(), ..Evidence::default() },
        })
        .collect();
    let began = Instant::now();
    store.record_attempts(&reports).await?;
    moved.recording += began.elapsed();
    moved.rows += u64::try_from(reports.len())?;
    Ok(())
}

/// Rows are churned while another session holds a snapshot from before: nothing of them can be cleaned
/// away.
async fn under_an_old_snapshot(
    context: &Context<'_>,
    figures: &mut Figures,
    database: &Database,
    endpoints: &[EndpointKey],
) -> anyhow::Result<()> {
    let churned = (context.plan.rows / CHURNED).max(SMALLEST);
    database.clear().await?;
    let count = churned + 3 * ROWS_MEASURED;
    database.fill(Backlog { endpoints, count, payload: PAYLOAD }).await?;
    database.vacuum().await?;
    context.tell(Scenario::Backlog, 0, "without an old snapshot");
    let clean = measure(context, database, endpoints, ROWS_MEASURED).await?;
    add(figures, "before a snapshot", clean);
    let snapshot = database.hold_a_snapshot().await?;
    context.tell(Scenario::Backlog, 0, &format!("{churned} rows churned under an old snapshot"));
    let churning = measure(context, database, endpoints, churned).await?;
    add(figures, &format!("{churned} rows churned under a snapshot"), churning);
    let held = measure(context, database, endpoints, ROWS_MEASURED).await?;
    add(figures, "after that, the snapshot still held", held);
    snapshot.release().await?;
    let name = "throughput under an old snapshot, of the clean one";
    figures.target(name, "", Wanted::AtLeast(THROUGHPUT_MIN), held.per_second / clean.per_second);
    let name = "buffers under an old snapshot, of the clean ones";
    figures.target(name, "x", Wanted::AtMost(BUFFERS_MAX), held.buffers / clean.buffers);
    database.clear().await
}
