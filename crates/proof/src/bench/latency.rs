//! From the producer's first byte to the receiver's, at rates that the machine can bear.
//!
//! Beside it stands what one durable commit of one row takes, on one session, in the same round: a
//! submission costs at least one of them before it is answered.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use uuid::Uuid;

use super::arithmetic::{of_count, percentile};
use super::database::Database;
use super::figures::{Figures, Wanted};
use super::ingest::load;
use super::load::{Load, Pace, Producers, Sent};
use super::receiver::{Arrival, Conduct, Receiver};
use super::service::{Service, Size};
use super::stage::Endpoint;
use super::{Context, Plan, Scenario};

const ENDPOINTS: usize = 100;
/// Submissions a second, with what their percentiles may be at most, as a multiple of one commit.
pub(super) const RATES: [(u32, &[(f64, f64)]); 3] =
    [(100, &[(0.5, 8.0), (0.99, 20.0)]), (500, &[]), (1_000, &[(0.99, 40.0)])];
/// The percentiles that are told.
const SHARES: [(&str, f64); 4] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];
/// How long what was submitted last may take to arrive.
const ARRIVAL_MAX: Duration = Duration::from_secs(5);

pub(super) async fn run(context: &Context<'_>, figures: &mut Figures) -> anyhow::Result<()> {
    let database = context.database.as_ref().context("it needs PostgreSQL")?;
    let receiver = Receiver::start()?;
    let endpoints = context.stage.endpoints(ENDPOINTS, &receiver.url(Conduct::AtOnce)).await?;
    for round in 0..context.plan.rounds {
        context.tell(Scenario::Latency, round, "one commit");
        let commits = database.single_commits(context.plan.alone() / 2).await?;
        let commit = percentile(&commits, 0.5).context("nothing was committed")?;
        figures.add("one durable commit of one row: p50", "ms", millis(commit));
        for (rate, wanted) in RATES {
            context.tell(Scenario::Latency, round, &format!("{rate} submissions/s"));
            let measured = measure(context, &receiver, &endpoints, rate).await?;
            measured.add_to(figures, rate)?;
            for (share, times) in wanted {
                let latency = percentile(&measured.latencies, *share).context("nothing arrived")?;
                let name = format!("{rate}/s: p{:.0}, of one commit", share * 100.0);
                figures.target(name, "x", Wanted::AtMost(*times), ratio(latency, commit));
            }
            database.clear().await?;
        }
    }
    Ok(())
}

pub(super) struct Measured {
    /// In order.
    latencies: Vec<Duration>,
    lost: u64,
    per_second: f64,
}

impl Measured {
    pub(super) fn add_to(&self, figures: &mut Figures, rate: u32) -> anyhow::Result<()> {
        figures.add(format!("{rate}/s: submitted"), "/s", self.per_second);
        figures.add(format!("{rate}/s: not arrived within 5 s"), "", of_count(self.lost));
        for (name, share) in SHARES {
            let latency = percentile(&self.latencies, share).context("nothing arrived")?;
            figures.add(format!("{rate}/s: {name}"), "ms", millis(latency));
        }
        Ok(())
    }
}

async fn measure(
    context: &Context<'_>,
    receiver: &Receiver,
    endpoints: &[Endpoint],
    rate: u32,
) -> anyhow::Result<Measured> {
    let service = Service::start(context, Size { apis: 1, workers: 1 }).await?;
    let load = load(context, endpoints, &service.addresses);
    let measured = drive(context.plan, receiver, load, rate).await?;
    service.kill().await?;
    Ok(measured)
}

/// Submits at that rate, and waits for what is on its way.
pub(super) async fn drive(
    plan: &Plan,
    receiver: &Receiver,
    load: Load,
    rate: u32,
) -> anyhow::Result<Measured> {
    receiver.keep_arrivals();
    let pace = Pace::PerSecond(rate.into());
    let delivered = receiver.delivered_from_now();
    let producers = Producers::start(Load { pace, kept: true, ..load })?;
    let began = Instant::now();
    producers.warm_up(plan.warm_up()).await;
    let measured_from = Instant::now();
    tokio::time::sleep(plan.duration).await;
    let sent = producers.stop().await?;
    let elapsed = began.elapsed();
    let until = Instant::now() + ARRIVAL_MAX;
    while delivered.count() < u64::try_from(sent.len())? && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let per_second = super::arithmetic::per_second(u64::try_from(sent.len())?, elapsed);
    let sent: Vec<Sent> = sent.into_iter().filter(|sent| sent.at >= measured_from).collect();
    let latencies = latencies(&sent, &receiver.take_arrivals());
    let lost = u64::try_from(sent.len() - latencies.len())?;
    Ok(Measured { latencies, lost, per_second })
}

/// How long each took that arrived, in order. What arrived twice counts once, by its first arrival.
pub(super) fn latencies(sent: &[Sent], arrivals: &[Arrival]) -> Vec<Duration> {
    let mut first: HashMap<Uuid, Instant> = HashMap::with_capacity(arrivals.len());
    for arrival in arrivals {
        let at = first.entry(arrival.webhook_id).or_insert(arrival.at);
        *at = arrival.at.min(*at);
    }
    let arrived = sent.iter().filter_map(|sent| {
        let at = first.get(&sent.submission)?;
        Some(at.saturating_duration_since(sent.at))
    });
    let mut latencies: Vec<Duration> = arrived.collect();
    latencies.sort();
    latencies
}

pub(super) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

pub(super) fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}

impl Database {
    /// How long one row takes to be stored durably, one after the other on one session, in order.
    async fn single_commits(&self, duration: Duration) -> anyhow::Result<Vec<Duration>> {
        self.prepare_single_commits().await?;
        let until = Instant::now() + duration;
        let mut commits = Vec::new();
        while Instant::now() < until || commits.is_empty() {
            let began = Instant::now();
            self.commit_one().await?;
            commits.push(began.elapsed());
        }
        commits.sort();
        Ok(commits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_is_matched_with_what_was_sent_by_its_first_arrival() {
        let began = Instant::now();
        let at = |millis| began + Duration::from_millis(millis);
        let id = Uuid::from_u128;
        let sent = [(1, 0), (2, 10), (3, 20)].map(|(n, ms)| Sent { submission: id(n), at: at(ms) });
        let arrival = |n, ms| Arrival { webhook_id: id(n), at: at(ms) };
        let arrivals = [arrival(2, 90), arrival(1, 7), arrival(2, 15), arrival(9, 1)];
        let expected = [5, 7].map(Duration::from_millis);
        assert_eq!(latencies(&sent, &arrivals), expected);
    }
}
