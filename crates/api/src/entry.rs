//! The api as a process of its own.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use process::{ConfigArgs, DatabaseArgs, HoldArgs, SealingArgs, Sections};
use store::{Store, StoreError};

use crate::Args;

/// Serves the HTTP API of Fencepost.
#[derive(Debug, Parser)]
#[command(name = "fencepost-api", version)]
struct CommandLine {
    #[command(flatten)]
    _config: ConfigArgs,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    sealing: SealingArgs,
    #[command(flatten)]
    hold: HoldArgs,
    #[command(flatten)]
    api: Args,
}

/// Reads the command line and serves until SIGTERM or SIGINT.
///
/// When both addresses are bound, one line is printed on standard output:
/// `listening http://ADDRESS private http://ADDRESS`.
#[must_use]
pub fn main_entry() -> ExitCode {
    let line: CommandLine = process::settings::parse(Sections::Api);
    process::init_log();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = runtime.context("no runtime").and_then(|runtime| runtime.block_on(run(&line)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(line: &CommandLine) -> anyhow::Result<()> {
    let stop = process::stop_on_signal().context("cannot install signal handlers")?;
    let sealer = line.sealing.required()?;
    let settings = line.api.settings(&sealer);
    let store = line.database.open(sealer).await?;
    check(store.as_ref()).await?;
    line.hold.set(store.as_ref()).await?;
    let running = crate::start(settings, store, stop)?;
    announce(&running).context("cannot write to standard output")?;
    running.finished().await?;
    tracing::info!("stopped");
    Ok(())
}

/// A wrong schema ends the process, with the command that mends it. A database that is away does
/// not: it may be back before the process would be.
async fn check(store: &dyn Store) -> Result<(), StoreError> {
    match store.check().await {
        Err(error) if error.is_transient() => {
            let cause = error.chain();
            tracing::warn!(cause, "the database is away; requests get 503 until it is back");
            Ok(())
        }
        checked => checked,
    }
}

fn announce(running: &crate::RunningApi) -> std::io::Result<()> {
    let (public, private) = (running.address(), running.private_address());
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening http://{public} private http://{private}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }
}
