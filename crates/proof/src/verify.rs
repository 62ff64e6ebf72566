//! The guarantees, raced live on a scratch database, each beside its negative control.
//!
//! A check runs its race in rounds and judges what each left behind. Its control is the naive form of
//! the same thing (read, compare in the program, write), run by as many contestants, with a barrier
//! between the read and the write. So the violation is certain in the first round, and the same judge
//! must see it: a control that shows none makes the check inconclusive, which is not a pass. (The control
//! of the outbox reads nothing: it is two transactions, and a process that dies between them.)
//!
//! One file a check. A new one is a type that implements `check::Check`, and a name in [`Name`] or beside
//! another under its name.

mod check;
mod claim;
mod endpoint_update;
mod fence;
mod idempotency;
mod inbox;
mod outbox;
mod rate_limit;
mod replay;
mod report;
mod reservation;
mod surroundings;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use store::Backend;
use tokio::time::timeout;

use self::check::{Check, Round};
pub use self::report::{CheckReport, ControlReport, Report, Verdict};
use self::surroundings::Surroundings;
use crate::Scratch;
use crate::ground::Ground;

/// A round that takes longer than this has hung.
const ROUND_MAX: Duration = Duration::from_mins(2);

/// What can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Name {
    /// G1: workers partition what is due, and take over what expired.
    Claim,
    /// G2 and G3: a worker that lost its claim changes nothing, and leaves history.
    Fence,
    /// G4: one submission a key.
    Idempotency,
    /// G5: one replay of a failed delivery.
    Replay,
    /// G6: a budget that all processes share.
    RateLimit,
    /// G7: changes of an endpoint, one after the other.
    EndpointUpdate,
    /// G8: an order and its submission, both or neither.
    Outbox,
    /// G8: no more is sold than there is, and each sale is told.
    Reservation,
    /// G9: one effect an inbound event.
    Inbox,
}

impl Name {
    fn checks(self, backend: Backend) -> Vec<Box<dyn Check>> {
        let check: Box<dyn Check> = match self {
            Self::Claim => Box::new(claim::Claim),
            Self::Fence => Box::new(fence::Fence),
            Self::Idempotency => Box::new(idempotency::Idempotency),
            Self::Replay => Box::new(replay::ReplayOnce),
            Self::RateLimit => Box::new(rate_limit::RateLimits::default()),
            Self::EndpointUpdate => Box::new(endpoint_update::EndpointUpdates),
            Self::Outbox => Box::new(outbox::Outbox),
            Self::Reservation => Box::new(reservation::Reservation),
            Self::Inbox => return inbox::checks(backend),
        };
        vec![check]
    }
}

/// What is to be proven, and how hard.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Which checks, in this order.
    pub checks: Vec<Name>,
    /// How often each is run.
    pub rounds: u32,
    /// How many contestants race.
    pub concurrency: usize,
    /// Whether the negative controls are run too.
    pub control: bool,
    /// The program that runs [`contestant::run`](crate::contestant::run) when it is given the argument
    /// [`contestant::ARGUMENT`](crate::contestant::ARGUMENT), and is the api when it is started under the
    /// name [`bench::API`](crate::bench::API).
    pub program: PathBuf,
}

/// Proves what `plan` names on a scratch database. `told` learns of each check before it runs.
///
/// # Errors
/// The scratch database cannot be used. What goes wrong within a check is in its report.
pub async fn verify(
    scratch: &Scratch,
    plan: &Plan,
    mut told: impl FnMut(&str),
) -> anyhow::Result<Report> {
    let surroundings = Surroundings::look(scratch, plan.concurrency)
        .await
        .context("the scratch database cannot be examined")?;
    let ground = Ground::new(scratch.url(), surroundings.crowd, &plan.program)?;
    let mut checks = Vec::new();
    for mut check in plan.checks.iter().flat_map(|name| name.checks(scratch.backend())) {
        told(check.name());
        checks.push(run(check.as_mut(), &ground, plan).await);
        ground.release().await;
    }
    Ok(Report::new(surroundings, checks))
}

async fn run(check: &mut dyn Check, ground: &Ground, plan: &Plan) -> CheckReport {
    let mut report = CheckReport::of(check, ground);
    for _ in 0..plan.rounds {
        let round = bounded(check.round(ground)).await;
        let goes_on = report.add(round);
        if !goes_on {
            break;
        }
    }
    if plan.control {
        ground.release().await;
        report.control =
            Some(ControlReport::of(check.naive(), bounded(check.control(ground)).await));
    }
    report.judged()
}

async fn bounded(round: impl Future<Output = anyhow::Result<Round>>) -> anyhow::Result<Round> {
    timeout(ROUND_MAX, round).await.context("the round did not end")?
}
