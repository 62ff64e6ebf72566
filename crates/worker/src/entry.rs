//! The process `fencepost-worker`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use process::{AddressPolicyArgs, ConfigArgs, DatabaseArgs, HoldArgs, SealingArgs, Sections};

/// The delivery worker of Fencepost: claims what is due, sends it, records what came of it.
#[derive(Debug, Parser)]
#[command(name = "fencepost-worker", version)]
struct Command {
    #[command(flatten)]
    _config: ConfigArgs,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    sealing: SealingArgs,
    #[command(flatten)]
    hold: HoldArgs,
    #[command(flatten)]
    address_policy: AddressPolicyArgs,
    #[command(flatten)]
    worker: crate::Args,
}

/// Runs a worker until SIGTERM or SIGINT: the whole of the binary `fencepost-worker`.
///
/// Prints `worker ready private http://ADDRESS` on standard output when its loops run. A database that cannot be reached is
/// waited for; one whose schema this build cannot use ends the process.
#[must_use]
pub fn main_entry() -> ExitCode {
    let command: Command = process::settings::parse(Sections::Worker);
    process::init_log();
    match run(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(serve(command));
    // A look-up of a name may still occupy a thread; it is not waited for.
    runtime.shutdown_background();
    ended
}

async fn serve(command: &Command) -> anyhow::Result<()> {
    let stop = process::stop_on_signal().context("signals cannot be received")?;
    let store = command.database.open(command.sealing.required()?).await?;
    command.hold.set(store.as_ref()).await?;
    let settings = command.worker.settings(command.address_policy.policy());
    tracing::info!(worker = settings.name, "starting");
    let mut worker = crate::start(settings, store, stop.clone());
    let private = command.worker.serve_private(worker.health(), stop).await?;
    if worker.started().await {
        // Whoever started the process may have closed the pipe, which is no reason not to deliver.
        let private = private.map(|it| format!(" private http://{it}")).unwrap_or_default();
        let _ = writeln!(std::io::stdout(), "worker ready{private}");
    }
    worker.finished().await
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Command::command().debug_assert();
    }
}
