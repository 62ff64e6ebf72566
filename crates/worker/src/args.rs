//! The worker's arguments.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use domain::destination::AddressPolicy;

use tokio_util::sync::CancellationToken;

use crate::Settings;
use crate::health::Health;
use crate::private::serve_private;

/// Arguments of a worker. Each has a default, and its limits are those of [`Settings`].
#[derive(Debug, Clone, clap::Args)]
#[group(id = "worker")]
#[command(next_help_heading = "Worker")]
pub struct Args {
    /// The worker's name in attempts and logs; the host's name and the process's id by default.
    #[arg(long, env = "FENCEPOST_WORKER_NAME", value_name = "NAME", value_parser = name)]
    pub worker_name: Option<String>,
    /// How many requests are open at once.
    #[arg(long, env = "FENCEPOST_WORKER_CONCURRENCY", value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub worker_concurrency: u16,
    /// How many deliveries one claim takes at most.
    #[arg(long, env = "FENCEPOST_WORKER_CLAIM_TOTAL", value_name = "N", default_value_t = 128)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub worker_claim_total: u16,
    /// How many deliveries of one endpoint one claim takes at most.
    #[arg(
        long,
        env = "FENCEPOST_WORKER_CLAIM_PER_ENDPOINT",
        value_name = "N",
        default_value_t = 16
    )]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub worker_claim_per_endpoint: u16,
    /// How often the worker looks for what is due.
    #[arg(
        long,
        env = "FENCEPOST_WORKER_POLL_INTERVAL",
        value_name = "TIME",
        default_value = "200ms"
    )]
    #[arg(value_parser = |text: &str| duration(text, MS..=3_600_000 * MS))]
    pub worker_poll_interval: Duration,
    /// How often the worker looks for what was committed late.
    #[arg(
        long,
        env = "FENCEPOST_WORKER_SWEEP_INTERVAL",
        value_name = "TIME",
        default_value = "15s"
    )]
    #[arg(value_parser = |text: &str| duration(text, 10 * MS..=3_600_000 * MS))]
    pub worker_sweep_interval: Duration,
    /// How much of all payloads is in memory at once.
    #[arg(
        long,
        env = "FENCEPOST_WORKER_PAYLOAD_MEMORY",
        value_name = "SIZE",
        default_value = "32MiB"
    )]
    #[arg(value_parser = payload_memory)]
    pub worker_payload_memory: u32,
    /// How many results one statement records at most.
    #[arg(long, env = "FENCEPOST_WORKER_RECORD_BATCH", value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub worker_record_batch: u16,
    /// How many results wait to be recorded at most.
    #[arg(long, env = "FENCEPOST_WORKER_RECORD_QUEUE", value_name = "N", default_value_t = 256)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub worker_record_queue: u16,
    /// How long a stop may take.
    #[arg(
        long,
        env = "FENCEPOST_WORKER_STOP_DEADLINE",
        value_name = "TIME",
        default_value = "25s"
    )]
    #[arg(value_parser = |text: &str| duration(text, 100 * MS..=300_000 * MS))]
    pub worker_stop_deadline: Duration,
    /// How long the look-up of a name may take.
    #[arg(long, env = "FENCEPOST_WORKER_DNS_DEADLINE", value_name = "TIME", default_value = "3s")]
    #[arg(value_parser = |text: &str| duration(text, 10 * MS..=30_000 * MS))]
    pub worker_dns_deadline: Duration,
    /// How long something may be due with nothing claimed before the worker is not ready any more.
    #[arg(long, env = "FENCEPOST_WORKER_STALLED_AFTER", value_name = "TIME", default_value = "1m")]
    #[arg(value_parser = |text: &str| duration(text, 100 * MS..=3_600_000 * MS))]
    pub worker_stalled_after: Duration,
    /// Where readiness and metrics are told, or "off"; keep it away from callers.
    #[arg(
        long,
        env = "FENCEPOST_WORKER_PRIVATE_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8082"
    )]
    pub worker_private_listen: PrivateListen,
}

/// Where a worker tells its readiness and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrivateListen {
    /// Nowhere.
    Off,
    /// There. Port 0 lets the system choose one.
    On(SocketAddr),
}

impl FromStr for PrivateListen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        text.parse().map(Self::On).map_err(|_| "must be an address with a port, or off".to_owned())
    }
}

impl Args {
    /// The settings that they ask for, with requests going where the policy allows.
    ///
    /// The policy has its own arguments, because the api of the same process has them too.
    #[must_use]
    pub fn settings(&self, address_policy: AddressPolicy) -> Settings {
        let defaults = Settings::default();
        Settings {
            name: self.worker_name.clone().unwrap_or(defaults.name),
            concurrency: self.worker_concurrency,
            claim_total: self.worker_claim_total,
            claim_per_endpoint: self.worker_claim_per_endpoint,
            poll_interval: self.worker_poll_interval,
            sweep_interval: self.worker_sweep_interval,
            payload_memory_bytes: self.worker_payload_memory,
            record_batch_max: self.worker_record_batch,
            record_queue_max: self.worker_record_queue,
            stop_deadline: self.worker_stop_deadline,
            dns_deadline: self.worker_dns_deadline,
            stalled_after: self.worker_stalled_after,
            address_policy,
        }
    }

    /// Serves readiness and metrics of a worker as asked. Answers where.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn serve_private(
        &self,
        health: Health,
        stop: CancellationToken,
    ) -> anyhow::Result<Option<SocketAddr>> {
        match self.worker_private_listen {
            PrivateListen::Off => Ok(None),
            PrivateListen::On(address) => serve_private(address, health, stop).await.map(Some),
        }
    }
}

const MS: Duration = Duration::from_millis(1);

fn duration(text: &str, limits: RangeInclusive<Duration>) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if limits.contains(&duration) {
        return Ok(duration);
    }
    let [from, to] = [limits.start(), limits.end()].map(|it| humantime::format_duration(*it));
    Err(format!("must be between {from} and {to}"))
}

fn payload_memory(text: &str) -> Result<u32, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text.get(digits.len()..).unwrap_or_default() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        unit => return Err(format!("{unit:?} is none of B, KiB, MiB and GiB")),
    };
    let count: u64 = digits.trim().parse().map_err(|_| "is not a number with a unit".to_owned())?;
    match u32::try_from(count.saturating_mul(unit)) {
        Ok(bytes) if bytes >= 64 << 10 => Ok(bytes),
        _ => Err("must be at least 64KiB and less than 4GiB".to_owned()),
    }
}

fn name(text: &str) -> Result<String, String> {
    let limit = store::delivery::WORKER_NAME_CHARACTERS_MAX;
    let is_printable = !text.chars().any(char::is_control);
    if is_printable && (1..=limit).contains(&text.chars().count()) {
        return Ok(text.to_owned());
    }
    Err(format!("must have 1 to {limit} printable characters"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        worker: Args,
    }

    fn parse(arguments: &[&str]) -> Result<Settings, String> {
        let command = Command::try_parse_from([&["worker"], arguments].concat());
        command.map(|it| it.worker.settings(AddressPolicy::default())).map_err(|e| e.to_string())
    }

    #[test]
    fn the_defaults_of_the_arguments_are_those_of_the_settings() {
        assert_eq!(format!("{:?}", parse(&[]).unwrap()), format!("{:?}", Settings::default()));
    }

    #[test]
    fn durations_and_sizes_are_in_human_units() {
        let settings = parse(&[
            "--worker-poll-interval=1s 500ms",
            "--worker-payload-memory=64MiB",
            "--worker-name=left",
        ])
        .unwrap();
        assert_eq!(settings.poll_interval, Duration::from_millis(1_500));
        assert_eq!(settings.payload_memory_bytes, 64 * 1024 * 1024);
        assert_eq!(settings.name, "left");
    }

    #[test]
    fn what_is_outside_its_limits_is_refused_and_the_limit_is_named() {
        for (argument, word) in [
            ("--worker-concurrency=0", "1..=65535"),
            ("--worker-poll-interval=0s", "between 1ms and 1h"),
            ("--worker-stop-deadline=1h", "between 100ms and 5m"),
            ("--worker-dns-deadline=soon", "expected number"),
            ("--worker-payload-memory=4GiB", "less than 4GiB"),
            ("--worker-payload-memory=1kb", "KiB"),
            ("--worker-name=", "1 to 64"),
            ("--worker-stalled-after=1ms", "between 100ms and 1h"),
            ("--worker-private-listen=8082", "an address with a port, or off"),
        ] {
            let refused = parse(&[argument]).unwrap_err();
            assert!(refused.contains(word), "{argument}: {refused}");
        }
    }

    #[test]
    fn parsed_settings_are_within_the_limits_of_the_library() {
        for arguments in [
            ["--worker-poll-interval=1h", "--worker-sweep-interval=10ms"],
            ["--worker-payload-memory=64KiB", "--worker-stop-deadline=5m"],
        ] {
            let settings = parse(&arguments).unwrap();
            let text = format!("{settings:?}");
            assert_eq!(format!("{:?}", settings.within_limits()), text);
        }
    }
}
