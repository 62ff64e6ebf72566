//! `fencepost verify`: the guarantees, raced live on a scratch database beside the one named.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::ValueEnum as _;
use proof::Scratch;
use proof::verify::{Name, Plan};

use crate::command_line::DatabaseArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    database: DatabaseArgs,
    /// An empty PostgreSQL database to use, where the role may not create one.
    #[arg(long, value_name = "URL", hide_env_values = true)]
    scratch_url: Option<ScratchUrl>,
    /// Run only these checks.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<Name>,
    /// How often each check is run, 1 to 10,000.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// How many contestants race, 2 to 1,000.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(2..=1_000))]
    concurrency: u16,
    /// Leave the negative controls out.
    #[arg(long)]
    no_control: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
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

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let all = Name::value_variants();
    let plan = Plan {
        checks: if args.only.is_empty() { all.to_vec() } else { args.only },
        rounds: args.rounds,
        concurrency: args.concurrency.into(),
        control: !args.no_control,
        program: std::env::current_exe().context("where is this program?")?,
    };
    let stop = process::stop_on_signal()?;
    let lent = args.scratch_url.as_ref().map(|url| url.0.as_str());
    let scratch = Scratch::create(&args.database.database_url, lent).await?;
    let watched = std::io::stderr().is_terminal();
    let proven = tokio::select! {
        report = proof::verify::verify(&scratch, &plan, |check| {
            if watched {
                eprintln!("{check} …");
            }
        }) => Some(report),
        () = stop.cancelled() => None,
    };
    // Whatever happened, the scratch database is dropped.
    scratch.drop().await?;
    let Some(report) = proven else { bail!("stopped before the end") };
    let report = report?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        // Beside the object and not in it, so that it stays one.
        report.checks.iter().for_each(|check| eprintln!("{}", check.line()));
    } else {
        print!("{report}");
    }
    Ok(if report.holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a contestant's process does.
pub(crate) async fn contest() -> anyhow::Result<ExitCode> {
    proof::contestant::run().await?;
    Ok(ExitCode::SUCCESS)
}
