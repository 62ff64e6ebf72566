//! Ingest and delivery at once, as fast as both keep up.
//!
//! Producers that are far ahead of the deliveries wait: what is accepted is then what is delivered, and
//! the backlog stays short.

use std::time::Instant;

use domain::id::EndpointKey;

use super::arithmetic::{per_second, serial_limit};
use super::database::{Backlog, Database};
use super::deliver::BARE_CONNECTIONS;
use super::figures::{Figures, Wanted};
use super::ingest::{api_alone, load};
use super::load::{Load, Pace, Producers};
use super::meter::{Meter, add_done};
use super::receiver::{self, Conduct, Receiver};
use super::service::{Service, Size, peak_mebibytes};
use super::stage::Endpoint;
use super::{Context, Plan, Scenario};

pub(super) const ENDPOINTS: usize = 100;
const ONE_OF_EACH: Size = Size { apis: 1, workers: 1 };
/// How many may be accepted and not yet delivered.
const AHEAD_MAX: u64 = 2_000;
/// How much longer than a case of another scenario this one is measured, in halves.
const LONGER: u32 = 5;
/// Microseconds of processor time of api, worker and PostgreSQL for one delivered submission.
const COST_MAX: f64 = 300.0;
/// MiB that the processes may have resident.
const API_MEMORY_MAX: f64 = 100.0;
const WORKER_MEMORY_MAX: f64 = 150.0;

pub(super) async fn run(context: &Context<'_>, figures: &mut Figures) -> anyhow::Result<()> {
    let receiver = Receiver::start()?;
    let url = receiver.url(Conduct::AtOnce);
    let endpoints = context.stage.endpoints(ENDPOINTS, &url).await?;
    for round in 0..context.plan.rounds {
        let limit = limits(context, figures, &receiver, &endpoints, round).await?;
        context.tell(Scenario::Steady, round, "ingest and delivery");
        let measured = measure(context, figures, &receiver, &endpoints, ONE_OF_EACH, None).await?;
        if let Some(cost) = measured.cost {
            let name = "CPU of api, worker and PostgreSQL for each delivered";
            figures.target(name, "µs", Wanted::AtMost(COST_MAX), cost);
        }
        add_memory(figures, context, &measured);
        if let Some(limit) = limit {
            let name = "delivered, of the serial limit of all parts";
            let reached = measured.delivered_per_second / limit;
            figures.target(name, "", Wanted::AtLeast(0.5), reached);
        }
    }
    Ok(())
}

/// What each part does alone, and all of them together at most. None where the database cannot be
/// measured alone.
async fn limits(
    context: &Context<'_>,
    figures: &mut Figures,
    receiver: &Receiver,
    endpoints: &[Endpoint],
    round: u32,
) -> anyhow::Result<Option<f64>> {
    let tell = |what: &str| context.tell(Scenario::Steady, round, what);
    let (plan, duration) = (context.plan, context.plan.alone());
    tell("the api alone");
    let api = api_alone(context, endpoints).await?;
    figures.add("api alone", "/s", api);
    tell("the receiver alone");
    let bare = receiver::alone(receiver, plan.payloads.of(0), BARE_CONNECTIONS, duration).await?;
    figures.add("bare client to receiver", "/s", bare);
    let Some(database) = &context.database else { return Ok(None) };
    tell("the database alone");
    let keys: Vec<EndpointKey> = endpoints.iter().map(|endpoint| endpoint.key).collect();
    let (accepting, delivering) = alone(context, database, &keys).await?;
    figures.add("database alone, 100 rows a statement", "/s", accepting);
    figures.add("database alone, claim and record of 100", "/s", delivering);
    let limit = serial_limit(&[api, bare, accepting, delivering]);
    figures.add("serial limit of all parts", "/s", limit);
    Ok(Some(limit))
}

async fn alone(
    context: &Context<'_>,
    database: &Database,
    endpoints: &[EndpointKey],
) -> anyhow::Result<(f64, f64)> {
    let (plan, duration) = (context.plan, context.plan.alone());
    let accepting = database.accepting(endpoints, &plan.payloads, duration).await?;
    database.clear().await?;
    let payload = plan.payloads.of(0);
    database.fill(Backlog { endpoints, count: plan.backlog, payload: &payload }).await?;
    let delivering = database.delivering(endpoints, duration).await?;
    database.clear().await?;
    Ok((accepting, delivering))
}

/// What a case came to.
pub(super) struct Measured {
    pub(super) delivered_per_second: f64,
    /// Microseconds of processor time of api, worker and PostgreSQL for one delivered.
    cost: Option<f64>,
    /// MiB, of the process that had most.
    api_memory: Option<f64>,
    worker_memory: Option<f64>,
}

/// Both at once with so many processes. Each figure has the case in front of its name, where that has one.
pub(super) async fn measure(
    context: &Context<'_>,
    figures: &mut Figures,
    receiver: &Receiver,
    endpoints: &[Endpoint],
    size: Size,
    case: Option<&str>,
) -> anyhow::Result<Measured> {
    let database = context.database.as_ref();
    let begun = match database {
        Some(database) => Some(database.done().await?),
        None => None,
    };
    let started = receiver.delivered();
    let service = Service::start(context, size).await?;
    let meter = Meter { apis: &service.apis, workers: &service.workers, database };
    let load = load(context, endpoints, &service.addresses);
    let driven = drive(context.plan, figures, receiver, load, meter, case).await?;
    let (api_memory, worker_memory) =
        (peak_mebibytes(&service.apis), peak_mebibytes(&service.workers));
    service.kill().await?;
    if let (Some(database), Some(begun)) = (database, begun) {
        let all = receiver.delivered() - started;
        let case = case.unwrap_or(EACH);
        add_done(figures, case, begun, database.done().await?, all);
        database.clear().await?;
    }
    let Driven { delivered_per_second, cost } = driven;
    Ok(Measured { delivered_per_second, cost, api_memory, worker_memory })
}

/// What is told of each where the case has no name.
pub(super) const EACH: &str = "for each delivered";

pub(super) struct Driven {
    delivered_per_second: f64,
    /// Microseconds of processor time of what can be seen of the product, for one delivered.
    cost: Option<f64>,
}

/// Submits as fast as what is submitted is delivered.
pub(super) async fn drive(
    plan: &Plan,
    figures: &mut Figures,
    receiver: &Receiver,
    load: Load,
    meter: Meter<'_>,
    case: Option<&str>,
) -> anyhow::Result<Driven> {
    let pace = Pace::KeepingUp { delivered: receiver.delivered_from_now(), ahead_max: AHEAD_MAX };
    let producers = Producers::start(Load { pace, ..load })?;
    producers.warm_up(plan.warm_up()).await;
    let (from, accepted, delivered) = (meter.read(), producers.accepted(), receiver.delivered());
    let began = Instant::now();
    tokio::time::sleep(plan.duration * LONGER / 2).await;
    let (to, elapsed) = (meter.read(), began.elapsed());
    let delivered = receiver.delivered() - delivered;
    let accepted = producers.accepted() - accepted;
    producers.stop().await?;
    let used = to.since(from);
    let delivered_per_second = per_second(delivered, elapsed);
    for (name, rate) in
        [("accepted", per_second(accepted, elapsed)), ("delivered", delivered_per_second)]
    {
        let name = case.map_or(name.to_owned(), |case| format!("{case}: {name}"));
        figures.add(name, "/s", rate);
    }
    used.add_to(figures, case.unwrap_or(EACH), delivered);
    Ok(Driven { delivered_per_second, cost: used.of_the_product(delivered) })
}

fn add_memory(figures: &mut Figures, context: &Context<'_>, measured: &Measured) {
    if context.database.is_none() {
        figures.add_if("peak memory of serve", "MiB", measured.api_memory);
        return;
    }
    if let Some(memory) = measured.api_memory {
        figures.target("peak memory of api", "MiB", Wanted::AtMost(API_MEMORY_MAX), memory);
    }
    if let Some(memory) = measured.worker_memory {
        figures.target("peak memory of worker", "MiB", Wanted::AtMost(WORKER_MEMORY_MAX), memory);
    }
}
