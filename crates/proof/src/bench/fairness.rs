//! Healthy endpoints beside bad ones: one that has a long backlog, some that hang until the deadline and
//! some that answer 500.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use domain::id::EndpointKey;

use super::arithmetic::{of_count, percentile};
use super::database::{Backlog, Database};
use super::figures::{Figures, Wanted};
use super::ingest::load;
use super::latency::{latencies, millis, ratio};
use super::load::{Load, Pace, Producers, Sent};
use super::processes::Process;
use super::receiver::{Conduct, Receiver};
use super::stage::Endpoint;
use super::{Context, Scenario};

const HEALTHY: usize = 799;
const HANGING: usize = 100;
const FAILING: usize = 100;
/// Submissions to the healthy ones, a second.
const RATE: f64 = 200.0;
/// The long backlog, as a multiple of that of other scenarios.
const LONG: u64 = 5;
/// How many deliveries each other bad endpoint has due, and each healthy one when shares are counted.
const SHORT: u64 = 32;
/// What is due in a backlog.
const PAYLOAD: &[u8] = b"{}";
/// The bad ones are at their worst by then.
const SETTLE: Duration = Duration::from_secs(2);
/// The longest that shares are counted, as a multiple of what a case takes.
const SHARES_MAX: u32 = 8;
/// What of the healthy backlog is delivered when shares are counted: nearly all of them still have
/// something due.
const COUNTED: f64 = 0.8;
const TIMES_MAX: f64 = 1.5;
/// A turn is up to half of [`SHORT`], and the long one may be in the middle of its own.
const SHARE_MAX: f64 = 2.0;

/// Who is there.
struct Cast {
    healthy: Vec<Endpoint>,
    bad: Vec<EndpointKey>,
    long: EndpointKey,
}

impl Cast {
    async fn make(context: &Context<'_>, receiver: &Receiver) -> anyhow::Result<Self> {
        let stage = &context.stage;
        let mut bad = stage.endpoints(HANGING, &receiver.url(Conduct::Hangs)).await?;
        bad.extend(stage.endpoints(FAILING, &receiver.url(Conduct::Fails)).await?);
        let long = stage.endpoints(1, &receiver.url(Conduct::Apart)).await?;
        Ok(Self {
            healthy: stage.endpoints(HEALTHY, &receiver.url(Conduct::AtOnce)).await?,
            bad: bad.iter().map(|endpoint| endpoint.key).collect(),
            long: long.first().context("the long one")?.key,
        })
    }

    fn healthy_keys(&self) -> Vec<EndpointKey> {
        self.healthy.iter().map(|endpoint| endpoint.key).collect()
    }
}

pub(super) async fn run(context: &Context<'_>, figures: &mut Figures) -> anyhow::Result<()> {
    let database = context.database.as_ref().context("it needs PostgreSQL")?;
    let receiver = Receiver::start()?;
    let cast = Cast::make(context, &receiver).await?;
    for round in 0..context.plan.rounds {
        let tell = |what: &str| context.tell(Scenario::Fairness, round, what);
        tell("the healthy ones alone");
        let alone = measure(context, database, &receiver, &cast).await?;
        add(figures, "without the bad ones", &alone)?;
        tell("beside the bad ones");
        fill_bad(context, database, &cast).await?;
        let beside = measure(context, database, &receiver, &cast).await?;
        add(figures, "beside the bad ones", &beside)?;
        let [p99_beside, p99_alone] =
            [&beside, &alone].map(|latencies| percentile(latencies, 0.99));
        let times = ratio(p99_beside.context("p99")?, p99_alone.context("p99")?);
        let name = "p99 of healthy endpoints beside the bad ones, of the same without";
        figures.target(name, "x", Wanted::AtMost(TIMES_MAX), times);
        tell("shares");
        let (of_long, of_others) = shares(context, database, &receiver, &cast).await?;
        let all = of_count(of_long + of_others);
        let others = of_count(u64::try_from(cast.healthy.len())?);
        let name = "share of the long backlog in what is delivered while all are due";
        figures.add(name, "%", 100.0 * of_count(of_long) / all);
        figures.add("its fair share", "%", 100.0 / (others + 1.0));
        let name = "what the long backlog gets, of what another gets while all are due";
        let times = of_count(of_long) / (of_count(of_others) / others);
        figures.target(name, "x", Wanted::AtMost(SHARE_MAX), times);
    }
    Ok(())
}

fn add(figures: &mut Figures, case: &str, latencies: &[Duration]) -> anyhow::Result<()> {
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let latency = percentile(latencies, share).context("nothing arrived")?;
        figures.add(format!("{case}: {name}"), "ms", millis(latency));
    }
    Ok(())
}

async fn fill_bad(context: &Context<'_>, database: &Database, cast: &Cast) -> anyhow::Result<()> {
    let count = context.plan.backlog * LONG;
    database.fill(Backlog { endpoints: &[cast.long], count, payload: PAYLOAD }).await?;
    let count = SHORT * u64::try_from(cast.bad.len())?;
    database.fill(Backlog { endpoints: &cast.bad, count, payload: PAYLOAD }).await
}

/// How long submissions to the healthy ones take to arrive, in order. The database is empty afterwards.
async fn measure(
    context: &Context<'_>,
    database: &Database,
    receiver: &Receiver,
    cast: &Cast,
) -> anyhow::Result<Vec<Duration>> {
    let environment = context.stage.environment();
    let worker = Process::worker(&environment).await?;
    let (api, address) = Process::api(&environment).await?;
    tokio::time::sleep(SETTLE.min(context.plan.duration)).await;
    receiver.keep_arrivals();
    let pace = Pace::PerSecond(RATE);
    let load = load(context, &cast.healthy, &[address]);
    let producers = Producers::start(Load { pace, kept: true, ..load })?;
    producers.warm_up(context.plan.warm_up()).await;
    let from = Instant::now();
    tokio::time::sleep(context.plan.duration).await;
    let sent = producers.stop().await?;
    // What is on its way.
    tokio::time::sleep(context.plan.warm_up()).await;
    let arrivals = receiver.take_arrivals();
    api.kill().await?;
    worker.kill().await?;
    database.clear().await?;
    let sent: Vec<Sent> = sent.into_iter().filter(|sent| sent.at >= from).collect();
    let latencies = latencies(&sent, &arrivals);
    let missing = sent.len() - latencies.len();
    // What has not come by then counts as what it has taken so far, at least.
    let still = std::iter::repeat_n(context.plan.warm_up(), missing);
    let mut all: Vec<Duration> = latencies.into_iter().chain(still).collect();
    all.sort();
    Ok(all)
}

/// How many of the long backlog are delivered while nearly all others have something due, and how many
/// of those.
async fn shares(
    context: &Context<'_>,
    database: &Database,
    receiver: &Receiver,
    cast: &Cast,
) -> anyhow::Result<(u64, u64)> {
    let healthy = cast.healthy_keys();
    let count = context.plan.backlog * LONG;
    database.fill(Backlog { endpoints: &[cast.long], count, payload: PAYLOAD }).await?;
    let count = SHORT * u64::try_from(healthy.len())?;
    database.fill(Backlog { endpoints: &healthy, count, payload: PAYLOAD }).await?;
    let (delivered, apart) = (receiver.delivered(), receiver.apart());
    let worker = Process::worker(&context.stage.environment()).await?;
    let until = Instant::now() + context.plan.duration * SHARES_MAX;
    let of_others = || receiver.delivered() - delivered - (receiver.apart() - apart);
    while of_count(of_others()) < COUNTED * of_count(count) && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (of_others, of_long) = (of_others(), receiver.apart() - apart);
    worker.kill().await?;
    database.clear().await?;
    anyhow::ensure!(of_others > 0, "nothing was delivered");
    Ok((of_long, of_others))
}
