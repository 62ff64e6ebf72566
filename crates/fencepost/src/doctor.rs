//! `fencepost doctor`: what is wrong with a database, in plain words, and what to do.
//!
//! It only reads. It ends with 0 if nothing has to be done, with 1 otherwise, also when the database
//! cannot be reached.

use std::process::ExitCode;
use std::time::Duration;

use domain::health::judge::{Thresholds, judge};
use domain::health::{Finding, Level};
use serde::Serialize;
use store::sealing::{Sealer, SealingKey};
use store::{StoreError, StoreOptions};
use time::OffsetDateTime;

use crate::command_line::DatabaseArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Answer as JSON, for machines.
    #[arg(long)]
    json: bool,
    /// How long a transaction may be open before it is told.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = humantime::parse_duration)]
    transaction_age: Duration,
    /// How long a delivery may be due before it is told.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = humantime::parse_duration)]
    due_age: Duration,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// The answer, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    /// The worst level.
    level: &'static str,
    findings: Vec<Told<'a>>,
}

#[derive(Debug, Serialize)]
struct Told<'a> {
    check: &'static str,
    level: &'static str,
    found: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    what_to_do: &'a str,
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let thresholds = Thresholds {
        transaction: args.transaction_age,
        due: args.due_age,
        ..Thresholds::default()
    };
    // No secret is opened: any sealer does.
    let options = StoreOptions::new(Sealer::new(SealingKey::generate()?, Vec::new()));
    let url = &args.database.database_url;
    let findings = match store::doctor::examine(url, options, OffsetDateTime::now_utc).await {
        Ok(facts) => judge(&facts, &thresholds),
        Err(error @ StoreError::Address { .. }) => return Err(error.into()),
        Err(error) => vec![unreadable(&error)],
    };
    let worst = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Fine);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&answer(worst, &findings))?);
    } else {
        println!("{}", words(&findings));
    }
    Ok(if worst == Level::Fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn unreadable(error: &StoreError) -> Finding {
    match error {
        StoreError::SchemaOutdated { .. } | StoreError::SchemaTooNew { .. } => Finding::critical(
            "schema",
            error.to_string(),
            "Every process with this build refuses to serve until it is done.",
        ),
        _ => Finding::critical(
            "database",
            error.chain(),
            "Nothing is accepted and nothing is delivered until the database answers. Look whether it runs, \
             whether this machine reaches it, and whether it has connections free.",
        ),
    }
}

fn answer(worst: Level, findings: &[Finding]) -> Answer<'_> {
    Answer { level: worst.as_str(), findings: findings.iter().map(told).collect() }
}

fn told(finding: &Finding) -> Told<'_> {
    let Finding { check, level, found, what_to_do } = finding;
    Told { check, level: level.as_str(), found, what_to_do }
}

/// The worst first; what is well comes last, each in a line.
fn words(findings: &[Finding]) -> String {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    let paragraph = |finding: &&Finding| {
        let mark = match finding.level {
            Level::Fine => "ok",
            Level::Warning => "WARNING",
            Level::Critical => "CRITICAL",
        };
        let mut text = format!("{mark:8}  {}: {}", finding.check, finding.found);
        if !finding.what_to_do.is_empty() {
            text.push_str("\n          -> ");
            text.push_str(&finding.what_to_do);
        }
        text
    };
    sorted.iter().map(paragraph).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_comes_first_with_what_to_do_and_json_says_the_same() {
        let findings = [
            Finding::fine("clock", "the clocks agree"),
            Finding::warning("slots", "one is off", "Wait."),
            Finding::critical("worker", "no worker lives", "Start one."),
        ];
        assert_eq!(
            words(&findings),
            "CRITICAL  worker: no worker lives\n          -> Start one.\n\
             WARNING   slots: one is off\n          -> Wait.\n\
             ok        clock: the clocks agree"
        );
        let json = serde_json::to_value(answer(Level::Critical, &findings)).unwrap();
        assert_eq!(json["level"], "critical");
        assert_eq!(json["findings"][0].get("what_to_do"), None);
        assert_eq!(json["findings"][1]["what_to_do"], "Wait.");
    }
}
