//! The one Fencepost binary, for one machine and for operators.
//!
//! One file a command. A command that serves or proves something starts the same api and worker that
//! the separate binaries start.
#![expect(clippy::print_stdout, reason = "a command's answer goes to standard output")]

mod bench;
mod command_line;
mod demo;
mod doctor;
mod hold;
mod keys;
mod migrate;
mod serve;
#[cfg(feature = "otlp")]
mod traces;
mod verify;

use std::process::ExitCode;

use anyhow::Context;
use process::Sections;

use crate::command_line::{Command, CommandLine};

fn main() -> ExitCode {
    // Under the names of the separate binaries it is those: so the bench measures real processes.
    match called_as().as_deref() {
        Some(proof::bench::API) => return traced(proof::bench::API, api::main_entry),
        Some(proof::bench::WORKER) => return traced(proof::bench::WORKER, worker::main_entry),
        Some(proof::bench::TRIVIAL) => return api::trivial_entry(),
        _ => {}
    }
    let line: CommandLine = process::settings::parse_subcommand("serve", Sections::Both);
    if matches!(line.command, Command::Serve(_)) {
        return traced("fencepost", || {
            process::init_log();
            answer(line.command)
        });
    }
    // What a person asked for is answered on standard output; beside it only what went wrong is told.
    process::init_log_with("warn");
    answer(line.command)
}

/// Runs a service, which tells its traces where that was built in and a collector is named.
#[cfg(feature = "otlp")]
fn traced(service: &'static str, run: impl FnOnce() -> ExitCode) -> ExitCode {
    match traces::Traces::begin(service) {
        // Dropped behind the run: the last ones are told then.
        Ok(_traces) => run(),
        Err(error) => {
            eprintln!("{service}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(feature = "otlp"))]
fn traced(_service: &'static str, run: impl FnOnce() -> ExitCode) -> ExitCode {
    run()
}

fn answer(command: Command) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = runtime.context("no runtime").and_then(|runtime| {
        let ended = runtime.block_on(run(command));
        // A look-up of a name may still occupy a thread; it is not waited for.
        runtime.shutdown_background();
        ended
    });
    match ended {
        Ok(code) => code,
        Err(error) => {
            eprintln!("fencepost: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The name that this process was started under.
fn called_as() -> Option<String> {
    let path = std::env::args_os().next()?;
    Some(std::path::Path::new(&path).file_name()?.to_str()?.to_owned())
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(args) => serve::run(*args).await,
        Command::Demo(args) => demo::run(args).await,
        Command::Migrate(args) => migrate::run(args).await,
        Command::Doctor(args) => doctor::run(&args).await,
        Command::Hold(args) => hold::run(args).await,
        Command::Keys(args) => keys::run(args).await,
        Command::Verify(args) => verify::run(args).await,
        Command::Contestant => verify::contest().await,
        Command::Bench(args) => bench::run(*args).await,
    }
}
