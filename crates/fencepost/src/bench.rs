//! `fencepost bench`: how fast, beside what the parts do alone in the same run.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use process::parse_duration;
use proof::Scratch;
use proof::bench::{Addresses, Payloads, Plan, Running, Scenario};
use store::Backend;

use crate::command_line::{DEFAULT_DATABASE_URL, DatabaseArgs};

const DURATION_MIN: Duration = Duration::from_millis(100);
const DURATION_MAX: Duration = Duration::from_mins(10);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is measured.
    #[arg(value_enum)]
    scenario: Choice,
    #[command(flatten)]
    database: DatabaseArgs,
    /// An empty PostgreSQL database to use, where the role may not create one.
    #[arg(long, value_name = "URL", hide_env_values = true)]
    scratch_url: Option<Secret>,
    /// Measure apis that already run, `http://HOST:PORT` each, with the workers on their database:
    /// `ingest`, `steady` and `latency`. --database-url is then theirs, and only read.
    #[arg(long, value_name = "URL", value_delimiter = ',', requires = "api_key")]
    #[arg(conflicts_with = "scratch_url")]
    api_url: Vec<String>,
    /// A key for them, of the role `admin`.
    #[arg(long, env = "FENCEPOST_API_KEY", value_name = "KEY", hide_env_values = true)]
    api_key: Option<Secret>,
    /// Where their workers reach this machine, `http://HOST:PORT` [default: loopback].
    #[arg(long, value_name = "URL", requires = "api_url")]
    receiver_url: Option<String>,
    /// How long each case of a round is measured, 100ms to 10m.
    #[arg(long, value_name = "TIME", default_value = "8s")]
    #[arg(value_parser = |text: &str| parse_duration(text, DURATION_MIN..=DURATION_MAX))]
    duration: Duration,
    /// How often each case is measured, 1 to 100.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How many connections submit, 1 to 1,000.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    connections: u16,
    /// How many bytes a payload has, 11 to 262,144.
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(11..=262_144))]
    payload_bytes: u32,
    /// A file of payloads to submit instead, a `{"payload": …}` in each line.
    #[arg(long, value_name = "FILE", conflicts_with = "payload_bytes")]
    payloads: Option<PathBuf>,
    /// How many deliveries are due when a backlog is drained, 100 to 10,000,000.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    backlog: u64,
    /// How many rows of history and of backlog `backlog` measures claim and record at, at most: 10,000,
    /// 1,000,000 and 10,000,000 as far as this goes.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(10_000..=10_000_000))]
    rows: u64,
    /// Draw the figures into this file.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// One scenario, or all.
#[derive(Debug, Clone, Copy)]
enum Choice {
    One(Scenario),
    All,
}

impl clap::ValueEnum for Choice {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::One(Scenario::Ingest),
            Self::One(Scenario::Deliver),
            Self::One(Scenario::Steady),
            Self::One(Scenario::Latency),
            Self::One(Scenario::Fairness),
            Self::One(Scenario::Backlog),
            Self::One(Scenario::Growth),
            Self::One(Scenario::HotRow),
            Self::All,
        ]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        match self {
            Self::One(scenario) => scenario.to_possible_value(),
            Self::All => Some(clap::builder::PossibleValue::new("all").help("All of them")),
        }
    }
}

/// A key, or an address, which may carry a password.
#[derive(Clone)]
struct Secret(String);

impl std::str::FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Args {
    fn plan(&self) -> anyhow::Result<Plan> {
        let payloads = match &self.payloads {
            Some(file) => Payloads::of_file(file).context("--payloads")?,
            None => Payloads::of_bytes(usize::try_from(self.payload_bytes)?),
        };
        Ok(Plan {
            scenarios: match self.scenario {
                Choice::One(scenario) => vec![scenario],
                Choice::All => Scenario::ALL.to_vec(),
            },
            duration: self.duration,
            rounds: self.rounds,
            connections: self.connections.into(),
            payloads,
            backlog: self.backlog,
            rows: self.rows,
            program: None,
        })
    }

    /// Where apis and workers already run. None where they are to be started.
    fn running(&self) -> anyhow::Result<Option<Addresses>> {
        let Some(key) = self.api_key.as_ref().filter(|_| !self.api_url.is_empty()) else {
            return Ok(None);
        };
        if !matches!(self.scenario, Choice::One(scenario) if scenario.takes_running()) {
            bail!("--api-url is for ingest, steady and latency: the others arrange a database");
        }
        let database = match self.database.database_url.as_str() {
            DEFAULT_DATABASE_URL => None,
            url if Backend::of_url(url)? == Backend::Postgres => Some(url.to_owned()),
            _ => bail!("--database-url beside --api-url is read, which is for PostgreSQL only"),
        };
        Ok(Some(Addresses {
            apis: self.api_url.clone(),
            key: key.0.clone(),
            receiver: self.receiver_url.clone(),
            database,
        }))
    }
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let plan = args.plan()?;
    let stop = process::stop_on_signal()?;
    let watched = std::io::stderr().is_terminal();
    let tell = |what: &str| {
        if watched {
            eprintln!("{what} …");
        }
    };
    let measured = if let Some(addresses) = args.running()? {
        let running = Running::find(&addresses).await?;
        tokio::select! {
            report = proof::bench::bench_running(&running, &plan, &tell) => Some(report),
            () = stop.cancelled() => None,
        }
    } else {
        let lent = args.scratch_url.as_ref().map(|url| url.0.as_str());
        let scratch = Scratch::create(&args.database.database_url, lent).await?;
        let measured = tokio::select! {
            report = proof::bench::bench(&scratch, &plan, &tell) => Some(report),
            () = stop.cancelled() => None,
        };
        // Whatever happened, the scratch database is dropped.
        scratch.drop().await?;
        measured
    };
    let Some(report) = measured else { bail!("stopped before the end") };
    let report = report?;
    if let Some(file) = &args.plot {
        let written = tokio::fs::write(file, report.plot()).await;
        written.with_context(|| format!("--plot {}", file.display()))?;
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(ExitCode::SUCCESS)
}
