//! `fencepost bench`: how fast, beside what the parts do alone in the same run.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use proof::Scratch;
use proof::bench::{Payloads, Plan, Scenario};

use crate::command_line::DatabaseArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is measured.
    #[arg(value_enum)]
    scenario: Choice,
    #[command(flatten)]
    database: DatabaseArgs,
    /// An empty PostgreSQL database to use, where the role may not create one.
    #[arg(long, value_name = "URL", hide_env_values = true)]
    scratch_url: Option<ScratchUrl>,
    /// How long each case of a round is measured, 100ms to 10min.
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = duration)]
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

/// An address, which may carry a password.
#[derive(Clone)]
struct ScratchUrl(String);

impl std::str::FromStr for ScratchUrl {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl std::fmt::Debug for ScratchUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScratchUrl")
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let duration = domain::duration::parse(text).map_err(|error| error.to_string())?;
    if (Duration::from_millis(100)..=Duration::from_mins(10)).contains(&duration) {
        Ok(duration)
    } else {
        Err("must be between 100ms and 10min".to_owned())
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
        })
    }
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let plan = args.plan()?;
    let stop = process::stop_on_signal()?;
    let lent = args.scratch_url.as_ref().map(|url| url.0.as_str());
    let scratch = Scratch::create(&args.database.database_url, lent).await?;
    let watched = std::io::stderr().is_terminal();
    let tell = |what: &str| {
        if watched {
            eprintln!("{what} …");
        }
    };
    let measured = tokio::select! {
        report = proof::bench::bench(&scratch, &plan, &tell) => Some(report),
        () = stop.cancelled() => None,
    };
    // Whatever happened, the scratch database is dropped.
    scratch.drop().await?;
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
