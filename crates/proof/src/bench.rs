//! How fast, and how near to what the machine can do.
//!
//! The real api and the real worker run as processes of their own, with their defaults, on a scratch
//! database. Every figure stands beside what its parts do alone in the same run: the database writing
//! the same rows in large statements, the receiver called by a bare client, the api answering a trivial
//! call. All of them share the processors with the load and the receiver, so what they could do
//! together is their serial limit.
//!
//! Rounds are interleaved: each measures every part and every case once, so that a machine which
//! becomes slower in between makes all of them slower. Medians are told, with their spread.
//!
//! Three scenarios can also drive processes that already run, elsewhere perhaps: see [`bench_running`].
//!
//! One file a scenario.

mod arithmetic;
mod backlog;
mod database;
mod deliver;
mod fairness;
mod figures;
mod growth;
mod hot_row;
mod ingest;
mod latency;
mod load;
mod machine;
mod meter;
mod payloads;
mod plot;
mod receiver;
mod report;
mod running;
mod service;
mod stage;
mod steady;
mod threads;
pub(crate) mod usage;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use store::Backend;

use self::database::Database;
use self::figures::Figures;
use self::stage::Stage;
use crate::{Scratch, client, processes};

pub use self::figures::{Course, Figure, Target, Wanted};
pub use self::machine::Machine;
pub use self::payloads::Payloads;
pub use self::report::{Report, ScenarioReport};
pub use self::running::{Addresses, Running, bench_running};
pub use crate::processes::{API, TRIVIAL, WORKER};

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    /// Submissions that are accepted, with nothing delivered.
    Ingest,
    /// A backlog that is delivered, with nothing submitted.
    Deliver,
    /// Both at once, as fast as both keep up.
    Steady,
    /// From the producer's first byte to the receiver's.
    Latency,
    /// Healthy endpoints beside bad ones.
    Fairness,
    /// Claim and record as the tables grow, and under an old snapshot.
    Backlog,
    /// Two apis and two workers beside one of each.
    Growth,
    /// Reservations that all need one row, in an application's own transaction.
    HotRow,
}

impl Scenario {
    /// All of them, in the order in which they run.
    pub const ALL: [Self; 8] = [
        Self::Ingest,
        Self::Deliver,
        Self::Steady,
        Self::Latency,
        Self::Fairness,
        Self::Backlog,
        Self::Growth,
        Self::HotRow,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Deliver => "deliver",
            Self::Steady => "steady",
            Self::Latency => "latency",
            Self::Fairness => "fairness",
            Self::Backlog => "backlog",
            Self::Growth => "growth",
            Self::HotRow => "hot-row",
        }
    }

    /// What it measures needs PostgreSQL.
    fn needs_postgres(self) -> bool {
        !matches!(self, Self::Steady)
    }
}

/// What is to be measured, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Which scenarios, in this order.
    pub scenarios: Vec<Scenario>,
    /// How long each case of a round is measured.
    pub duration: Duration,
    /// How often each case is measured.
    pub rounds: u32,
    /// How many connections submit.
    pub connections: usize,
    /// What is submitted.
    pub payloads: Payloads,
    /// How many deliveries are due when a backlog is drained.
    pub backlog: u64,
    /// How many rows of history and of backlog the largest tables have: 10 thousand and 1 and 10 million
    /// are measured as far as this goes.
    pub rows: u64,
    /// What api and worker are started from; this process's own binary where nothing is said.
    pub program: Option<PathBuf>,
}

/// How long the limits and the first moments of a case take, for each ten of the case itself.
const PART: u32 = 3;

impl Plan {
    /// How long what a part does alone is measured.
    fn alone(&self) -> Duration {
        self.duration * PART / 10
    }

    /// What is measured now, for a person who waits.
    fn now(&self, scenario: Scenario, round: u32, what: &str) -> String {
        format!("{} {}/{}: {what}", scenario.name(), round + 1, self.rounds)
    }

    /// How long a case runs before it is measured: connections open, statements are prepared.
    fn warm_up(&self) -> Duration {
        (self.duration / 10).max(Duration::from_millis(300))
    }
}

/// What a scenario works with.
struct Context<'a> {
    plan: &'a Plan,
    stage: Stage,
    /// On PostgreSQL.
    database: Option<Database>,
    told: &'a (dyn Fn(&str) + Sync),
}

impl Context<'_> {
    /// Tells a person who waits what is measured now.
    fn tell(&self, scenario: Scenario, round: u32, what: &str) {
        (self.told)(&self.plan.now(scenario, round, what));
    }
}

/// Measures what the plan names, on a scratch database. `told` learns what is being measured.
///
/// # Errors
/// Something that is measured did not work at all.
pub async fn bench(
    scratch: &Scratch,
    plan: &Plan,
    told: &(dyn Fn(&str) + Sync),
) -> anyhow::Result<Report> {
    let stage = Stage::set(scratch, plan.program.as_deref()).await?;
    let database = match stage.backend()? {
        Backend::Postgres => Some(Database::open(&stage.url).await?),
        Backend::Sqlite => None,
    };
    let machine = Machine::look(database.as_ref()).await?;
    let context = Context { plan, stage, database, told };
    let mut scenarios = Vec::new();
    for scenario in &plan.scenarios {
        scenarios.push(run(&context, *scenario).await?);
    }
    Ok(Report { machine, plan: report::PlanReport::of(plan), scenarios })
}

async fn run(context: &Context<'_>, scenario: Scenario) -> anyhow::Result<ScenarioReport> {
    let began = Instant::now();
    let mut figures = Figures::default();
    let mut notes = Vec::new();
    match scenario {
        _ if scenario.needs_postgres() && context.database.is_none() => {
            notes.push("is measured on PostgreSQL only".to_owned());
        }
        Scenario::Ingest => ingest::run(context, &mut figures).await?,
        Scenario::Deliver => deliver::run(context, &mut figures).await?,
        Scenario::Steady => steady::run(context, &mut figures).await?,
        Scenario::Latency => latency::run(context, &mut figures).await?,
        Scenario::Fairness => fairness::run(context, &mut figures).await?,
        Scenario::Backlog => backlog::run(context, &mut figures).await?,
        Scenario::Growth => {
            notes.extend(growth::NOTES.map(str::to_owned));
            growth::run(context, &mut figures).await?;
        }
        Scenario::HotRow => {
            notes.extend(hot_row::NOTES.map(str::to_owned));
            hot_row::run(context, &mut figures).await?;
        }
    }
    let courses = std::mem::take(&mut figures.courses);
    let (figures, targets) = figures.into_report();
    let seconds = began.elapsed().as_secs_f64();
    Ok(ScenarioReport { scenario: scenario.name(), seconds, figures, targets, courses, notes })
}
