//! `fencepost hold`: lets nothing be claimed, shows what waits, and lets it go.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use store::hold::{Hold, WaitingEndpoint};
use store::{CreatedWindow, Store};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::command_line::DatabaseArgs;
use crate::keys;

/// How often it is looked whether claims from before are over.
const LOOK: Duration = Duration::from_millis(500);
/// How many deliveries one statement settles.
const BATCH: u32 = 500;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Nothing is claimed from now on. Returns when claims from before are reported or over.
    On(On),
    /// What is due is claimed again.
    Off(Off),
    /// Whether it is on, and what would be sent.
    Status(Status),
    /// Settles what is due and was submitted before a time, as cancelled: it was sent already.
    MarkSent(MarkSent),
}

#[derive(Debug, clap::Args)]
struct On {
    /// Why, for whoever finds it.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, clap::Args)]
struct Off {
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, clap::Args)]
struct Status {
    /// Answer as JSON, for machines.
    #[arg(long)]
    json: bool,
    /// Count only what was submitted before this time (RFC 3339).
    #[arg(long, value_name = "TIME", value_parser = instant)]
    submitted_before: Option<OffsetDateTime>,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, clap::Args)]
struct MarkSent {
    /// Only what was submitted before this time (RFC 3339).
    #[arg(long, value_name = "TIME", value_parser = instant)]
    submitted_before: OffsetDateTime,
    #[command(flatten)]
    database: DatabaseArgs,
}

fn instant(text: &str) -> Result<OffsetDateTime, String> {
    OffsetDateTime::parse(text, &Rfc3339)
        .map_err(|_| "must be like 2026-11-30T12:00:00Z".to_owned())
}

/// Every id that was made before has a lower one.
fn below(time: OffsetDateTime) -> Uuid {
    CreatedWindow::of(None, Some(time)).below.unwrap_or(Uuid::nil())
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::On(args) => on(&args).await?,
        Action::Off(args) => off(&args).await?,
        Action::Status(args) => status(&args).await?,
        Action::MarkSent(args) => mark_sent(&args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn on(args: &On) -> anyhow::Result<()> {
    let store = keys::open(&args.database).await?;
    store.set_hold(true, args.reason.as_deref()).await.context("the hold was not set")?;
    println!("the hold is on: nothing is claimed until `fencepost hold off`");
    let mut told = None;
    loop {
        let hold = store.read_hold().await?;
        ensure!(hold.held, "somebody has released the hold");
        if hold.open_claims == 0 {
            println!("no claim from before it is open any more");
            return Ok(());
        }
        if told.replace(hold.open_claims) != Some(hold.open_claims) {
            let (count, most) = (hold.open_claims, hold.longest_lease.as_secs() + 1);
            println!(
                "{count} deliveries were claimed before it; at most {most} s until they are over"
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn off(args: &Off) -> anyhow::Result<()> {
    let store = keys::open(&args.database).await?;
    store.set_hold(false, None).await.context("the hold was not released")?;
    // It costs a poll interval if nobody hears it.
    let _ = store.notify_due(&[]).await;
    println!("the hold is off: what is due is claimed");
    Ok(())
}

async fn mark_sent(args: &MarkSent) -> anyhow::Result<()> {
    let store = keys::open(&args.database).await?;
    ensure!(store.is_held().await?, "the hold is off: what is due is being sent");
    let mut count = 0;
    loop {
        let settled = store.mark_sent(below(args.submitted_before), BATCH).await?;
        count += settled;
        if settled < BATCH.into() {
            break;
        }
    }
    println!("{count} deliveries are marked as sent (cancelled, marked_sent)");
    Ok(())
}

/// The answer, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Answer {
    held: bool,
    since: Option<String>,
    reason: Option<String>,
    open_claims: u64,
    endpoints_behind: u64,
    waiting: Vec<Waiting>,
}

#[derive(Debug, Serialize)]
struct Waiting {
    application_id: String,
    endpoint_id: String,
    due: u64,
    oldest_due_seconds: u64,
}

impl Answer {
    fn of(hold: Hold, waiting: Vec<WaitingEndpoint>) -> Self {
        let waiting = waiting.into_iter().map(|it| Waiting {
            application_id: it.application,
            endpoint_id: it.endpoint,
            due: it.due,
            oldest_due_seconds: it.oldest.as_secs(),
        });
        Self {
            held: hold.held,
            since: hold.since.and_then(|since| since.format(&Rfc3339).ok()),
            reason: hold.reason,
            open_claims: hold.open_claims,
            endpoints_behind: hold.endpoints_behind,
            waiting: waiting.collect(),
        }
    }
}

async fn status(args: &Status) -> anyhow::Result<()> {
    let store: Arc<dyn Store> = keys::open(&args.database).await?;
    let waiting = store.read_waiting(args.submitted_before.map(below)).await?;
    let answer = Answer::of(store.read_hold().await?, waiting);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&answer)?);
        return Ok(());
    }
    let since = answer.since.as_deref().unwrap_or("the start");
    let reason = answer.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    println!("the hold is {} since {since}{reason}", if answer.held { "on" } else { "off" });
    if answer.endpoints_behind > 0 {
        println!(
            "{} endpoints have not got it yet: run the same command again",
            answer.endpoints_behind
        );
    }
    println!("{} deliveries are claimed", answer.open_claims);
    for it in &answer.waiting {
        let Waiting { application_id, endpoint_id, due, oldest_due_seconds } = it;
        println!(
            "{due} due at {application_id}/{endpoint_id}, the oldest for {oldest_due_seconds} s"
        );
    }
    Ok(())
}
