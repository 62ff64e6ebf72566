//! A checkout: an application that embeds the store of Fencepost.
//!
//! It sells from a stock. What it takes from the stock, the record of the operation and the webhook that
//! tells of it are one transaction: all of them are there, or none is. The webhook is delivered by
//! `fencepost-worker`, a process of its own.
//!
//! Each command prints one JSON object. How it ended is also the exit code: 0 accepted or replayed,
//! 2 invalid, 3 insufficient, 4 conflict, 23 crashed as asked, 1 anything else.
#![expect(clippy::print_stdout, reason = "a command's answer goes to standard output")]

mod answer;
mod command_line;
mod connect;
mod init;
mod input;
mod reserve;
mod restock;
mod show;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use self::answer::Answer;
use self::command_line::{Command, CommandLine};
use self::connect::connect;

/// The endpoint that reservations are told to.
const ENDPOINT_ID: &str = "checkout";

/// Runs the command that the arguments name.
#[must_use]
pub fn main_entry() -> ExitCode {
    let line = CommandLine::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = runtime.context("no runtime").and_then(|runtime| runtime.block_on(run(line)));
    let answer = ended.unwrap_or_else(|error| Answer::Failed { message: format!("{error:#}") });
    match serde_json::to_string(&answer) {
        Ok(text) => println!("{text}"),
        Err(error) => eprintln!("checkout: {error}"),
    }
    answer.exit_code()
}

async fn run(line: CommandLine) -> anyhow::Result<Answer> {
    let url = &line.database_url;
    match line.command {
        Command::Init(args) => init::run(url, &args).await,
        Command::Reserve(args) => reserve::run(url, &args).await,
        Command::Restock(args) => restock::run(url, &args).await,
        Command::Show => show::run(url).await,
    }
}
