//! A backlog is drained, and nothing is submitted.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use domain::id::EndpointKey;

use super::arithmetic::{per_second, serial_limit};
use super::database::{Backlog, Database};
use super::figures::{Figures, Wanted};
use super::meter::{Meter, add_done};
use super::receiver::{self, Conduct, Receiver};
use super::service::{Service, Size, peak_mebibytes};
use super::{Context, Scenario};

pub(super) const ENDPOINTS: usize = 100;
/// How many requests the bare client has open: more do not go faster on loopback.
pub(super) const BARE_CONNECTIONS: usize = 64;
/// How often the receiver is asked whether it is drained.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long the first delivery may take.
const FIRST: Duration = Duration::from_secs(20);
/// How long nothing may arrive before the backlog counts as drained.
const QUIET: Duration = Duration::from_secs(2);

struct Case {
    name: &'static str,
    conduct: Conduct,
    endpoints: usize,
}

/// What is drained, and by how many.
pub(super) struct Drain<'a> {
    pub(super) case: &'a str,
    pub(super) endpoints: &'a [EndpointKey],
    pub(super) workers: usize,
}

const AT_ONCE: &str = "receiver at once, 100 endpoints";
const CASES: [Case; 3] = [
    Case { name: AT_ONCE, conduct: Conduct::AtOnce, endpoints: ENDPOINTS },
    Case {
        name: "receiver after 10 ms, 100 endpoints",
        conduct: Conduct::After(10),
        endpoints: ENDPOINTS,
    },
    Case { name: "receiver at once, 1 endpoint", conduct: Conduct::AtOnce, endpoints: 1 },
];

pub(super) async fn run(context: &Context<'_>, figures: &mut Figures) -> anyhow::Result<()> {
    let database = context.database.as_ref().context("it needs PostgreSQL")?;
    let receiver = Receiver::start()?;
    let mut cases = Vec::new();
    for case in &CASES {
        let url = receiver.url(case.conduct);
        let endpoints = context.stage.endpoints(case.endpoints, &url).await?;
        cases.push((case, endpoints.iter().map(|it| it.key).collect::<Vec<EndpointKey>>()));
    }
    for round in 0..context.plan.rounds {
        let limit = limits(context, figures, database, &receiver, round, &cases).await?;
        let mut at_once = None;
        for (case, endpoints) in &cases {
            context.tell(Scenario::Deliver, round, case.name);
            let drained = Drain { case: case.name, endpoints, workers: 1 };
            let rate = drain(context, figures, database, &receiver, drained).await?;
            match at_once {
                None => {
                    let reached = rate / limit;
                    let name = "delivered at once, of the serial limit";
                    figures.target(name, "", Wanted::AtLeast(0.4), reached);
                    at_once = Some(rate);
                }
                Some(at_once) if case.conduct != Conduct::AtOnce => {
                    let name = "delivered after 10 ms, of the same at once";
                    figures.target(name, "", Wanted::AtLeast(0.8), rate / at_once);
                }
                Some(at_once) => {
                    let name = "delivered to 1 endpoint, of the same to 100";
                    figures.target(name, "", Wanted::Told, rate / at_once);
                }
            }
        }
    }
    Ok(())
}

type Prepared = (&'static Case, Vec<EndpointKey>);

/// What receiver and database do alone, and together at most.
async fn limits(
    context: &Context<'_>,
    figures: &mut Figures,
    database: &Database,
    receiver: &Receiver,
    round: u32,
    cases: &[Prepared],
) -> anyhow::Result<f64> {
    context.tell(Scenario::Deliver, round, "the receiver alone");
    let payload = context.plan.payloads.of(0);
    let duration = context.plan.alone();
    let bare = receiver::alone(receiver, payload, BARE_CONNECTIONS, duration).await?;
    figures.add("bare client to receiver", "/s", bare);
    context.tell(Scenario::Deliver, round, "the database alone");
    let (_, endpoints) = cases.first().context("no case")?;
    fill(context, database, endpoints).await?;
    let alone = database.delivering(endpoints, duration).await?;
    database.clear().await?;
    figures.add("database alone, claim and record of 100", "/s", alone);
    let limit = serial_limit(&[bare, alone]);
    figures.add("serial limit", "/s", limit);
    Ok(limit)
}

async fn fill(
    context: &Context<'_>,
    database: &Database,
    endpoints: &[EndpointKey],
) -> anyhow::Result<()> {
    let payload = context.plan.payloads.of(0);
    let backlog = Backlog { endpoints, count: context.plan.backlog, payload: &payload };
    database.fill(backlog).await
}

/// Lets workers deliver the backlog until it is drained, at most for the duration, and tells how many
/// a second. What came in the first moments does not count.
pub(super) async fn drain(
    context: &Context<'_>,
    figures: &mut Figures,
    database: &Database,
    receiver: &Receiver,
    Drain { case, endpoints, workers }: Drain<'_>,
) -> anyhow::Result<f64> {
    fill(context, database, endpoints).await?;
    let started = receiver.delivered();
    let begun = database.done().await?;
    let service = Service::start(context, Size { apis: 0, workers }).await?;
    let meter = Meter { apis: &[], workers: &service.workers, database: Some(database) };
    let enough = started + context.plan.backlog;
    wait_until(receiver, started + 1, FIRST).await;
    wait_until(receiver, enough, context.plan.warm_up()).await;
    let (from, before) = (meter.read(), receiver.delivered());
    let last = wait_until(receiver, enough, context.plan.duration).await;
    let (to, delivered) = (meter.read(), receiver.delivered() - before);
    to.since(from).add_to(figures, case, delivered);
    let peak = peak_mebibytes(&service.workers);
    figures.add_if(format!("{case}: peak memory of worker"), "MiB", peak);
    service.kill().await?;
    let all = receiver.delivered() - started;
    add_done(figures, case, begun, database.done().await?, all);
    database.clear().await?;
    anyhow::ensure!(
        delivered > 0,
        "nothing was delivered while it was measured: a longer --backlog is needed"
    );
    let rate = per_second(delivered, last.duration_since(from.at));
    figures.add(format!("{case}: delivered"), "/s", rate);
    Ok(rate)
}

/// Waits until so many are delivered, until nothing is any more after some were, or for that long. Answers when the
/// last one was seen.
async fn wait_until(receiver: &Receiver, enough: u64, duration: Duration) -> Instant {
    let until = Instant::now() + duration;
    let before = receiver.delivered();
    let (mut count, mut last) = (before, Instant::now());
    while count < enough && Instant::now() < until && (count == before || last.elapsed() < QUIET) {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = receiver.delivered();
        if now > count {
            (count, last) = (now, Instant::now());
        }
    }
    last
}
