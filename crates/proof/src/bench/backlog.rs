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
/// How many rows one measurement claims and records, less than the smallest backlog: a whole number of
/// claims.
const ROWS_MEASURED: u64 = 5_120;
/// How many it does before, so that its session has opened what it needs and has its plans.
const ROWS_BEFORE: u64 = 1_024;
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
    /// Of the session that claims and records, where it can be seen.
    cpu_micros: Option<f64>,
    /// Of the whole server: with what it does beside, as checkpoints and vacuums.
    server_micros: Option<f64>,
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
        database.clear().await?;
        fill(context, database, &endpoints, size).await?;
        database.vacuum().await?;
        let mut costs = Vec::new();
        for round in 0..context.plan.rounds {
            context.tell(Scenario::Backlog, round, &format!("claim and record at {size} rows"));
            if size == SMALLEST {
                // So small a backlog would be used up.
                let count = ROWS_BEFORE + ROWS_MEASURED;
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

/// History and backlog of this size. Millions take minutes: who waits is told how far they are.
async fn fill(
    context: &Context<'_>,
    database: &Database,
    endpoints: &[EndpointKey],
    size: u64,
) -> anyhow::Result<()> {
    let tell = |of: &str, made: u64| {
        context.tell(Scenario::Backlog, 0, &format!("{made} of {size} rows of {of}"));
    };
    database.fill_history(endpoints, size, &|made| tell("history", made)).await?;
    let backlog = Backlog { endpoints, count: size, payload: PAYLOAD };
    database.fill_telling(backlog, &|made| tell("backlog", made)).await
}

fn add(figures: &mut Figures, case: &str, cost: Cost) {
    figures.add(format!("{case}: claim"), "µs each", cost.claim_micros);
    figures.add(format!("{case}: record"), "µs each", cost.record_micros);
    figures.add_if(format!("{case}: CPU of the session"), "µs each", cost.cpu_micros);
    figures.add_if(format!("{case}: CPU of PostgreSQL"), "µs each", cost.server_micros);
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
    let others = database.sessions_of_the_store().await?;
    let buffers = database.buffers().await?;
    let store = context.stage.lone_store().await?;
    let before = move_rows(&store, endpoints, ROWS_BEFORE).await?;
    let mut sessions = database.sessions_of_the_store().await?;
    sessions.retain(|session| !others.contains(session));
    let processes = database.processes_of(&sessions).await?;
    let used =
        || processes.iter().flatten().map(|session| session.used()).sum::<Option<Duration>>();
    let used = || processes.is_some().then(used).flatten();
    let (cpu, of_server) = (used(), database.used());
    let began = Instant::now();
    let moved = move_rows(&store, endpoints, rows).await?;
    let elapsed = began.elapsed();
    let each_micros = |from: Option<Duration>, to: Option<Duration>| {
        Some(each(micros(to?.saturating_sub(from?)), moved.rows))
    };
    let (cpu_micros, server_micros) =
        (each_micros(cpu, used()), each_micros(of_server, database.used()));
    // A session tells what it touched when it ends.
    drop(store);
    database.wait_for_the_end_of(&sessions).await?;
    let touched = database.buffers().await?.saturating_sub(buffers);
    Ok(Cost {
        claim_micros: each(micros(moved.claiming), moved.rows),
        record_micros: each(micros(moved.recording), moved.rows),
        cpu_micros,
        server_micros,
        buffers: each(of_count(touched), before.rows + moved.rows),
        per_second: of_count(moved.rows) / elapsed.as_secs_f64(),
    })
}

/// Moves so many rows of these endpoints in turn.
async fn move_rows(
    store: &Arc<dyn Store>,
    endpoints: &[EndpointKey],
    rows: u64,
) -> anyhow::Result<Moved> {
    let mut moved = Moved::default();
    let (mut turn, mut empty) = (0, 0);
    while moved.rows < rows {
        let at = turn * ENDPOINTS_PER_CLAIM % endpoints.len();
        let due: Vec<EndpointKey> =
            endpoints.iter().cycle().skip(at).take(ENDPOINTS_PER_CLAIM).copied().collect();
        let before = moved.rows;
        move_some(store, &due, &mut moved).await?;
        turn += 1;
        empty = if moved.rows == before { empty + 1 } else { 0 };
        anyhow::ensure!(empty < endpoints.len(), "the backlog is used up");
    }
    Ok(moved)
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
    // More than is claimed: claims are whole ones.
    let count = churned + 4 * (ROWS_BEFORE + ROWS_MEASURED);
    let backlog = Backlog { endpoints, count, payload: PAYLOAD };
    let tell = |made| {
        let what = format!("{made} of {count} rows of backlog to churn");
        context.tell(Scenario::Backlog, 0, &what);
    };
    database.fill_telling(backlog, &tell).await?;
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
