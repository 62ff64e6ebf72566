//! `fencepost demo`: the whole path on sample payloads, with the same api and worker that serve.
//!
//! A receiver on loopback verifies every request with the reference implementation of Standard
//! Webhooks and may misbehave on first attempts. The demonstration ends well only if every submission
//! was delivered, verified and arrived byte for byte as it was submitted.

mod faults;
mod receiver;
mod samples;
mod service;
mod submitter;
mod summary;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use domain::delivery::StateName;
use domain::rate_limit::{RATE_UNITS_MAX, RATE_WINDOW_MIN, RateLimit};

use self::receiver::Receiver;
use self::service::Service;
use self::submitter::Submitted;
use self::summary::Summary;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A file of `{"event_type": …, "payload": …}`, one a line. Without it, the project's samples.
    #[arg(long, value_name = "FILE")]
    payloads: Option<PathBuf>,
    /// Make the scratch database beside this one. Without it, an SQLite file that is deleted.
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Which share of first attempts the receiver spoils: an error, a stall or a cut connection.
    #[arg(long, value_name = "0..1", default_value_t = 0.0, value_parser = rate)]
    fail_rate: f64,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.0..=1.0).contains(&rate) => Ok(rate),
        _ => Err("is a number between 0 and 1".to_owned()),
    }
}

/// With no delivery for this long, something is wrong.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the deliveries are counted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let samples = samples::load(args.payloads.as_deref())?;
    let secret = store::secret::generate_secret()?;
    let receiver = Receiver::start(&secret, args.fail_rate).await?;
    let service = Service::start(args.database_url.as_deref()).await?;
    // Whatever happens from here on, the scratch database is dropped.
    let shown = Shown { progress: !args.json && std::io::stdout().is_terminal() };
    let summary = demonstrate(&service, &receiver, samples, secret, &shown).await;
    service.stop().await?;
    let summary = summary?;
    if args.json {
        println!("{}", serde_json::to_string(&summary)?);
    } else {
        print!("{summary}");
    }
    Ok(if summary.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn demonstrate(
    service: &Service,
    receiver: &Receiver,
    samples: Vec<samples::Sample>,
    secret: domain::signing::SigningSecret,
    shown: &Shown,
) -> anyhow::Result<Summary> {
    let endpoint = service.create_endpoint(&receiver.url(), secret).await?;
    let began = Instant::now();
    let submitted = submitter::submit_all(service, &endpoint, samples).await?;
    wait_until_settled(service, receiver, &submitted, shown).await?;
    let elapsed = began.elapsed();
    let deliveries = service.deliveries().await?;
    Ok(Summary::of(service.backend(), &submitted, receiver, &deliveries, elapsed))
}

async fn wait_until_settled(
    service: &Service,
    receiver: &Receiver,
    submitted: &Submitted,
    shown: &Shown,
) -> anyhow::Result<()> {
    let (mut last, mut last_change) = (usize::MAX, Instant::now());
    loop {
        if service.count(StateName::Failed).await? > 0 {
            bail!("a delivery failed for good: {}", receiver.last_fault());
        }
        let open =
            service.count(StateName::Pending).await? + service.count(StateName::Processing).await?;
        shown.progress(submitted.accepted.len(), receiver.received());
        if open == 0 {
            shown.end();
            return Ok(());
        }
        let now = receiver.requests();
        if now != last {
            (last, last_change) = (now, Instant::now());
        }
        if last_change.elapsed() > PATIENCE {
            bail!("nothing was delivered for {} s", PATIENCE.as_secs());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Progress for a person who watches.
struct Shown {
    progress: bool,
}

impl Shown {
    fn progress(&self, submitted: usize, received: usize) {
        if self.progress {
            print!("\r{submitted} submitted, {received} received and verified");
            flush();
        }
    }

    fn end(&self) {
        if self.progress {
            println!();
        }
    }
}

fn flush() {
    use std::io::Write;
    // Nobody watches: then there is nobody to tell.
    let _ = std::io::stdout().flush();
}

/// The deadline of the demonstration's endpoint.
const DEADLINE: Duration = Duration::from_secs(1);

/// The settings of the demonstration's endpoint: quick to give up and quick to try again.
fn endpoint_settings() -> anyhow::Result<domain::endpoint::EndpointSettings> {
    let schedule =
        domain::delivery::retry::RetrySchedule::new(vec![Duration::from_millis(500); 10])?;
    domain::endpoint::EndpointSettings::new(domain::endpoint::SettingsDraft {
        deadline: DEADLINE,
        connect_deadline: Duration::from_millis(500),
        retry_schedule: schedule,
        overload_floor: Duration::ZERO,
        // The faults are made: nothing is to wait for a receiver that is down.
        circuit_breaker: false,
        // All payloads are submitted at once.
        ingest_rate: RateLimit::new(RATE_UNITS_MAX, RATE_WINDOW_MIN)?,
        ..Default::default()
    })
    .context("the settings of the demonstration's endpoint")
}
