//! Ingest and delivery at once, as fast as both keep up.
//!
//! Producers that are far ahead of the deliveries wait: what is accepted is then what is delivered, and
//! the backlog stays short.

use std::net::SocketAddr;
use std::time::Instant;

use domain::id::EndpointKey;

use super::arithmetic::{of_count, per_second, serial_limit};
use super::database::{Backlog, Database};
use super::deliver::BARE_CONNECTIONS;
use super::figures::{Figures, Wanted};
use super::ingest::{api_alone, load};
use super::load::{Load, Pace, Producers};
use super::meter::{Meter, add_done};
use super::processes::Process;
use super::receiver::{self, Conduct, Receiver};
use super::stage::Endpoint;
use super::{Context, Scenario};

const ENDPOINTS: usize = 100;
/// How many may be accepted and not yet delivered.
const AHEAD_MAX: u64 = 2_000;
/// How much longer than a case of another scenario this one is measured, in halves.
const LONGER: u32 = 5;
/// Microseconds of processor time of api, worker and PostgreSQL for one delivered submission.
const COST_MAX: f64 = 300.0;
/// MiB that the processes may have resident.
const API_MEMORY_MAX: f64 = 100.0;
const WORKER_MEMORY_MAX: f64 = 150.0;

/// Api and worker, apart or in one process.
struct Service {
    address: SocketAddr,
    api: Process,
    /// On PostgreSQL. SQLite has one server.
    worker: Option<Process>,
}

impl Service {
    async fn start(context: &Context<'_>) -> anyhow::Result<Self> {
        let environment = context.stage.environment();
        if context.database.is_none() {
            let (api, address) = Process::serve(&environment).await?;
            return Ok(Self { address, api, worker: None });
        }
        let worker = Process::worker(&environment).await?;
        let (api, address) = Process::api(&environment).await?;
        Ok(Self { address, api, worker: Some(worker) })
    }

    async fn kill(self) -> anyhow::Result<()> {
        self.api.kill().await?;
        if let Some(worker) = self.worker {
            worker.kill().await?;
        }
        Ok(())
    }
}

pub(super) async fn run(context: &Context<'_>, figures: &mut Figures) -> anyhow::Result<()> {
    let receiver = Receiver::start()?;
    let url = receiver.url(Conduct::AtOnce);
    let endpoints = context.stage.endpoints(ENDPOINTS, &url).await?;
    for round in 0..context.plan.rounds {
        let limit = limits(context, figures, &receiver, &endpoints, round).await?;
        context.tell(Scenario::Steady, round, "ingest and delivery");
        let delivered = measure(context, figures, &receiver, &endpoints).await?;
        if let Some(limit) = limit {
            let name = "delivered, of the serial limit of all parts";
            figures.target(name, "", Wanted::AtLeast(0.5), delivered / limit);
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

async fn measure(
    context: &Context<'_>,
    figures: &mut Figures,
    receiver: &Receiver,
    endpoints: &[Endpoint],
) -> anyhow::Result<f64> {
    let database = context.database.as_ref();
    let begun = match database {
        Some(database) => Some(database.done().await?),
        None => None,
    };
    let started = receiver.delivered();
    let service = Service::start(context).await?;
    let pace = Pace::KeepingUp { delivered: receiver.delivered_from_now(), ahead_max: AHEAD_MAX };
    let producers = Producers::start(Load { pace, ..load(context, endpoints, service.address) })?;
    tokio::time::sleep(context.plan.warm_up()).await;
    let meter = Meter { api: Some(&service.api), worker: service.worker.as_ref(), database };
    let (from, accepted, delivered) = (meter.read(), producers.accepted(), receiver.delivered());
    let began = Instant::now();
    tokio::time::sleep(context.plan.duration * LONGER / 2).await;
    let (to, elapsed) = (meter.read(), began.elapsed());
    let delivered = receiver.delivered() - delivered;
    let accepted = producers.accepted() - accepted;
    producers.stop().await?;
    let used = to.since(from);
    figures.add("accepted", "/s", per_second(accepted, elapsed));
    figures.add("delivered", "/s", per_second(delivered, elapsed));
    used.add_to(figures, "for each delivered", delivered);
    if let Some(cost) = used.of_the_product(delivered) {
        let name = "CPU of api, worker and PostgreSQL for each delivered";
        figures.target(name, "µs", Wanted::AtMost(COST_MAX), cost);
    }
    add_memory(figures, &service);
    service.kill().await?;
    if let (Some(database), Some(begun)) = (database, begun) {
        let all = receiver.delivered() - started;
        add_done(figures, "for each delivered", begun, database.done().await?, all);
        database.clear().await?;
    }
    Ok(per_second(delivered, elapsed))
}

fn add_memory(figures: &mut Figures, service: &Service) {
    let mebibytes = |process: &Process| Some(of_count(process.peak_memory()?) / 1_048_576.0);
    let Some(worker) = &service.worker else {
        figures.add_if("peak memory of serve", "MiB", mebibytes(&service.api));
        return;
    };
    if let Some(memory) = mebibytes(&service.api) {
        figures.target("peak memory of api", "MiB", Wanted::AtMost(API_MEMORY_MAX), memory);
    }
    if let Some(memory) = mebibytes(worker) {
        figures.target("peak memory of worker", "MiB", Wanted::AtMost(WORKER_MEMORY_MAX), memory);
    }
}
