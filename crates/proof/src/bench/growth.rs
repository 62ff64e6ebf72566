//! More processes on the same machine and the same database: what a second worker adds, and that two of
//! each lose nothing.

use anyhow::Context as _;
use domain::id::EndpointKey;

use super::database::Database;
use super::deliver::{Drain, drain};
use super::figures::{Figures, Wanted};
use super::receiver::{Conduct, Receiver};
use super::service::Size;
use super::stage::Endpoint;
use super::{Context, Scenario, deliver, steady};

const CONDUCTS: [(&str, Conduct); 2] =
    [("receiver at once", Conduct::AtOnce), ("receiver after 10 ms", Conduct::After(10))];
/// How much less two of each may deliver: rounds of one and the same differ by as much.
const KEPT_MIN: f64 = 0.95;

/// What a reader has to know.
pub(super) const NOTES: [&str; 1] =
    ["where PostgreSQL or the processors are the limit, more processes cannot add anything"];

pub(super) async fn run(context: &Context<'_>, figures: &mut Figures) -> anyhow::Result<()> {
    let database = context.database.as_ref().context("it needs PostgreSQL")?;
    let receiver = Receiver::start()?;
    let mut drained = Vec::new();
    for (name, conduct) in CONDUCTS {
        let url = receiver.url(conduct);
        let endpoints = context.stage.endpoints(deliver::ENDPOINTS, &url).await?;
        drained.push((name, endpoints.iter().map(|it| it.key).collect::<Vec<EndpointKey>>()));
    }
    let url = receiver.url(Conduct::AtOnce);
    let endpoints = context.stage.endpoints(steady::ENDPOINTS, &url).await?;
    for round in 0..context.plan.rounds {
        for (name, endpoints) in &drained {
            second_worker(context, figures, database, &receiver, round, name, endpoints).await?;
        }
        two_of_each(context, figures, &receiver, round, &endpoints).await?;
    }
    Ok(())
}

/// What two workers deliver of a backlog, beside one.
async fn second_worker(
    context: &Context<'_>,
    figures: &mut Figures,
    database: &Database,
    receiver: &Receiver,
    round: u32,
    name: &str,
    endpoints: &[EndpointKey],
) -> anyhow::Result<()> {
    let mut rates = [0.0; 2];
    for (workers, rate) in (1..).zip(&mut rates) {
        let case = format!("{name}, {}", counted(workers, "worker"));
        context.tell(Scenario::Growth, round, &case);
        let drained = Drain { case: &case, endpoints, workers };
        *rate = drain(context, figures, database, receiver, drained).await?;
    }
    let [one, two] = rates;
    let name = format!("{name}: delivered by 2 workers, of the same by 1");
    figures.target(name, "x", Wanted::Told, two / one);
    Ok(())
}

/// Ingest and delivery at once with two apis and two workers, beside one of each.
async fn two_of_each(
    context: &Context<'_>,
    figures: &mut Figures,
    receiver: &Receiver,
    round: u32,
    endpoints: &[Endpoint],
) -> anyhow::Result<()> {
    let mut rates = [0.0; 2];
    for (count, rate) in (1..).zip(&mut rates) {
        let case = format!("{}, {}", counted(count, "api"), counted(count, "worker"));
        context.tell(Scenario::Growth, round, &case);
        let size = Size { apis: count, workers: count };
        let measured = steady::measure(context, figures, receiver, endpoints, size, Some(&case));
        *rate = measured.await?.delivered_per_second;
    }
    let [one, two] = rates;
    let name = "delivered with 2 apis and 2 workers, of the same with 1 of each";
    figures.target(name, "x", Wanted::AtLeast(KEPT_MIN), two / one);
    Ok(())
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
