//! Producers submit as fast as they are answered, and nothing is delivered.

use std::net::SocketAddr;
use std::time::Instant;

use domain::id::EndpointKey;

use super::arithmetic::{per_second, serial_limit};
use super::figures::{Figures, Wanted};
use super::load::{Load, Producers};
use super::meter::{Meter, add_done};
use super::processes::{Environment, Process};
use super::service::peak_mebibytes;
use super::stage::Endpoint;
use super::{Context, Plan, Scenario};

/// How many endpoints are submitted to.
const ENDPOINTS: usize = 100;
/// Nothing is sent there: no worker runs.
const URL: &str = "http://127.0.0.1/";

/// A way to submit.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) repeated_percent: u64,
    /// How many submissions share one commit at most, where that is not the default.
    pub(super) commit_rows: Option<&'static str>,
}

pub(super) const CASES: [Case; 3] = [
    Case { name: "unique keys", repeated_percent: 0, commit_rows: None },
    Case { name: "10 % repeated keys", repeated_percent: 10, commit_rows: None },
    Case { name: "one submission a commit", repeated_percent: 0, commit_rows: Some("1") },
];

pub(super) async fn run(context: &Context<'_>, figures: &mut Figures) -> anyhow::Result<()> {
    let endpoints = context.stage.endpoints(ENDPOINTS, URL).await?;
    let keys: Vec<EndpointKey> = endpoints.iter().map(|endpoint| endpoint.key).collect();
    let environment = context.stage.environment();
    for round in 0..context.plan.rounds {
        let tell = |what: &str| context.tell(Scenario::Ingest, round, what);
        tell("the api alone");
        let api = api_alone(context, &endpoints).await?;
        figures.add("api alone", "/s", api);
        let mut alone = vec![api];
        if let Some(database) = &context.database {
            tell("the database alone");
            let (payloads, duration) = (&context.plan.payloads, context.plan.alone());
            let rate = database.accepting(&keys, payloads, duration).await?;
            database.clear().await?;
            figures.add("database alone, 100 rows a statement", "/s", rate);
            alone.push(rate);
        }
        let limit = serial_limit(&alone);
        figures.add("serial limit", "/s", limit);
        for (place, case) in CASES.iter().enumerate() {
            tell(case.name);
            let environment = match case.commit_rows {
                Some(rows) => environment.clone().with("FENCEPOST_COMMIT_ROWS", rows),
                None => environment.clone(),
            };
            let accepted = measure(context, figures, &environment, &endpoints, case).await?;
            if place == 0 && context.database.is_some() {
                let reached = accepted / limit;
                figures.target("accepted, of the serial limit", "", Wanted::AtLeast(0.5), reached);
            }
        }
    }
    Ok(())
}

/// Submissions to these endpoints, each with a key of its own, as fast as they are answered.
pub(super) fn load(
    context: &Context<'_>,
    endpoints: &[Endpoint],
    addresses: &[SocketAddr],
) -> Load {
    let paths = endpoints.iter().map(|endpoint| endpoint.path.clone()).collect();
    Load::of(context.plan, paths, &context.stage.authorization, addresses)
}

/// The same requests to the same server, which answers each at once.
pub(super) async fn api_alone(
    context: &Context<'_>,
    endpoints: &[Endpoint],
) -> anyhow::Result<f64> {
    let (process, address) = Process::trivial(&context.stage.environment()).await?;
    let producers = Producers::start(load(context, endpoints, &[address]))?;
    producers.warm_up(context.plan.warm_up()).await;
    let (began, before) = (Instant::now(), producers.answered());
    tokio::time::sleep(context.plan.alone()).await;
    let rate = per_second(producers.answered() - before, began.elapsed());
    producers.stop().await?;
    process.kill().await?;
    Ok(rate)
}

async fn measure(
    context: &Context<'_>,
    figures: &mut Figures,
    environment: &Environment,
    endpoints: &[Endpoint],
    case: &Case,
) -> anyhow::Result<f64> {
    let database = context.database.as_ref();
    let (api, address) = Process::api(environment).await?;
    let load = load(context, endpoints, &[address]);
    let load = Load { repeated_percent: case.repeated_percent, ..load };
    let meter = Meter { apis: std::slice::from_ref(&api), workers: &[], database };
    let begun = match database {
        Some(database) => Some(database.done().await?),
        None => None,
    };
    let (rate, all) = drive(context.plan, figures, load, meter, case.name).await?;
    figures.add_if(
        format!("{}: peak memory of api", case.name),
        "MiB",
        peak_mebibytes(std::slice::from_ref(&api)),
    );
    api.kill().await?;
    if let (Some(database), Some(begun)) = (database, begun) {
        add_done(figures, case.name, begun, database.done().await?, all);
        database.clear().await?;
    }
    Ok(rate)
}

/// Submits, and tells how many a second were answered, and how many in all.
pub(super) async fn drive(
    plan: &Plan,
    figures: &mut Figures,
    load: Load,
    meter: Meter<'_>,
    case: &str,
) -> anyhow::Result<(f64, u64)> {
    let producers = Producers::start(load)?;
    producers.warm_up(plan.warm_up()).await;
    let (from, before) = (meter.read(), producers.answered());
    tokio::time::sleep(plan.duration).await;
    let (to, answered) = (meter.read(), producers.answered() - before);
    let all = producers.answered();
    producers.stop().await?;
    let used = to.since(from);
    used.add_to(figures, case, answered);
    let rate = per_second(answered, used.elapsed);
    figures.add(format!("{case}: answered"), "/s", rate);
    Ok((rate, all))
}
