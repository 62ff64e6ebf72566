//! Each scenario of `fencepost bench` for a moment, with real processes: what it answers, never how fast.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use integration_tests::postgres::TestPostgres;
use proof::Scratch;
use proof::bench::{Payloads, Plan, Report, Scenario, ScenarioReport, bench};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::sync::Mutex;
use url::Url;

/// Held by who measures: two measurements at once would leave one another nothing in so short a time.
pub(crate) static MEASURING: Mutex<()> = Mutex::const_new(());

pub(crate) fn plan(scenarios: &[Scenario]) -> Plan {
    Plan {
        scenarios: scenarios.to_vec(),
        duration: Duration::from_millis(300),
        rounds: 1,
        connections: 4,
        payloads: Payloads::of_bytes(64),
        // Not delivered before it is measured how fast it is.
        backlog: 4_000,
        rows: 10_000,
        program: Some(env!("CARGO_BIN_EXE_test-contestant").into()),
    }
}

/// Has these figures and ratios, all of them numbers, in text, JSON and plot.
pub(crate) fn tells(report: &Report, names: &[&str]) -> anyhow::Result<()> {
    let (json, plot) = (serde_json::to_value(report)?, report.plot());
    let text = report.to_string();
    let [scenario] = report.scenarios.as_slice() else { anyhow::bail!("one scenario: {text}") };
    let ScenarioReport { figures, targets, .. } = scenario;
    let all: Vec<_> = figures.iter().chain(targets.iter().map(|target| &target.figure)).collect();
    for figure in &all {
        ensure!(figure.median.is_finite(), "{} in {text}", figure.name);
    }
    for name in names {
        let figure = all.iter().find(|figure| figure.name == *name);
        let figure = figure.with_context(|| format!("{name} in {text}"))?;
        ensure!(figure.median > 0.0, "{name} in {text}");
        ensure!(text.contains(name) && plot.contains(name), "{name} in {text} and {plot}");
        ensure!(json.to_string().contains(&format!("\"name\":\"{name}\"")), "{name} in {json}");
    }
    Ok(())
}

async fn measured(scenario: Scenario, lent: Option<&str>) -> anyhow::Result<Report> {
    let _alone = MEASURING.lock().await;
    let database = TestPostgres::shared().await?.database().await?;
    let scratch = Scratch::create(database.url(), lent).await?;
    let report = bench(&scratch, &plan(&[scenario]), &|_| {}).await;
    scratch.drop().await?;
    report
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ingest_is_measured_in_every_case() -> anyhow::Result<()> {
    tells(
        &measured(Scenario::Ingest, None).await?,
        &[
            "api alone",
            "database alone, 100 rows a statement",
            "unique keys: answered",
            "10 % repeated keys: answered",
            "one submission a commit: answered",
            "unique keys: WAL",
            "accepted, of the serial limit",
        ],
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn deliver_is_measured_in_every_case() -> anyhow::Result<()> {
    tells(
        &measured(Scenario::Deliver, None).await?,
        &[
            "bare client to receiver",
            "database alone, claim and record of 100",
            "receiver at once, 100 endpoints: delivered",
            "receiver after 10 ms, 100 endpoints: delivered",
            "receiver at once, 1 endpoint: delivered",
            "delivered at once, of the serial limit",
            "delivered after 10 ms, of the same at once",
        ],
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn steady_is_measured_beside_its_limit() -> anyhow::Result<()> {
    tells(
        &measured(Scenario::Steady, None).await?,
        &[
            "serial limit of all parts",
            "accepted",
            "delivered",
            "for each delivered: WAL",
            "delivered, of the serial limit of all parts",
        ],
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn latency_is_measured_at_every_rate_and_leaves_nothing_in_a_database_that_was_lent()
-> anyhow::Result<()> {
    let database = TestPostgres::shared().await?.database().await?;
    let mut session = database.connect().await?;
    let name = format!("lent_to_the_bench_{}", std::process::id());
    session.execute(AssertSqlSafe(format!("create database {name}"))).await?;
    let mut url = Url::parse(database.url())?;
    url.set_path(&name);
    let report = measured(Scenario::Latency, Some(url.as_str())).await;
    let mut lent = PgConnection::connect(url.as_str()).await?;
    let left: Vec<String> = sqlx::query_scalar(
        "select relname::text from pg_class
        where relnamespace::regnamespace::text not in ('pg_catalog', 'information_schema', 'pg_toast')",
    )
    .fetch_all(&mut lent)
    .await?;
    lent.close().await?;
    session.execute(AssertSqlSafe(format!("drop database {name}"))).await?;
    assert_eq!(left, Vec::<String>::new());
    tells(
        &report?,
        &[
            "one durable commit of one row: p50",
            "100/s: p50",
            "500/s: p95",
            "1000/s: p99.9",
            "1000/s: p99, of one commit",
        ],
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fairness_is_measured_beside_bad_endpoints_with_the_share_of_the_long_backlog()
-> anyhow::Result<()> {
    tells(
        &measured(Scenario::Fairness, None).await?,
        &[
            "without the bad ones: p99",
            "beside the bad ones: p99",
            "p99 of healthy endpoints beside the bad ones, of the same without",
            "its fair share",
        ],
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn claim_and_record_are_measured_at_the_smallest_backlog_and_under_an_old_snapshot()
-> anyhow::Result<()> {
    tells(
        &measured(Scenario::Backlog, None).await?,
        &[
            "10000 rows: claim",
            "10000 rows: record",
            "10000 rows: buffers",
            "throughput under an old snapshot, of the clean one",
            "buffers under an old snapshot, of the clean ones",
        ],
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn growth_is_measured_with_one_and_two_of_each() -> anyhow::Result<()> {
    tells(
        &measured(Scenario::Growth, None).await?,
        &[
            "receiver at once, 1 worker: delivered",
            "receiver after 10 ms, 2 workers: delivered",
            "1 api, 1 worker: accepted",
            "2 apis, 2 workers: delivered",
            "receiver after 10 ms: delivered by 2 workers, of the same by 1",
            "delivered with 2 apis and 2 workers, of the same with 1 of each",
        ],
    )
}
