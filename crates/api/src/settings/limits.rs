//! What one process of the api takes on at once, as it is written on a command line.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::Settings;
use crate::CommitLimits;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MIB: u64 = 1024 * 1024;

/// Arguments of the limits.
#[derive(Debug, Clone, clap::Args)]
#[group(id = "limits")]
pub struct LimitArgs {
    /// The most open connections of callers, 16 to 65,536. Each may hold a payload while it comes in.
    #[arg(long, env = "FENCEPOST_CONNECTIONS_MAX", value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = clap::value_parser!(u32).range(16..=65_536))]
    pub connections_max: u32,
    /// Threads that serve callers, 1 to 256; one per processor by default.
    #[arg(long, env = "FENCEPOST_API_THREADS", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    pub api_threads: Option<u16>,
    /// How long the head of a connection's first request may take to arrive, 100 ms to 5 min. A later
    /// one has the keep-alive time besides.
    #[arg(long, env = "FENCEPOST_HEAD_DEADLINE", value_name = "TIME", default_value = "10s")]
    #[arg(value_parser = |text: &str| process::parse_duration(text, 100 * MILLISECOND..=300 * SECOND))]
    pub head_deadline: Duration,
    /// How long the body of a request may take to arrive, and what is written of an answer to be
    /// taken, 100 ms to 10 min.
    #[arg(long, env = "FENCEPOST_BODY_DEADLINE", value_name = "TIME", default_value = "30s")]
    #[arg(value_parser = |text: &str| process::parse_duration(text, 100 * MILLISECOND..=600 * SECOND))]
    pub body_deadline: Duration,
    /// How long an idle connection is kept open, 1 s to 1 h.
    #[arg(long, env = "FENCEPOST_KEEP_ALIVE", value_name = "TIME", default_value = "75s")]
    #[arg(value_parser = |text: &str| process::parse_duration(text, SECOND..=3_600 * SECOND))]
    pub keep_alive: Duration,
    /// How long requests may go on once the api stops, 1 s to 10 min, in whole seconds.
    #[arg(long, env = "FENCEPOST_API_STOP_DEADLINE", value_name = "TIME", default_value = "30s")]
    #[arg(value_parser = whole_seconds)]
    pub api_stop_deadline: Duration,
    /// The most bytes of payloads in one commit, up to 64 MiB; a larger payload is committed alone.
    #[arg(long, env = "FENCEPOST_COMMIT_BYTES", value_name = "SIZE", default_value = "4MiB")]
    #[arg(value_parser = |text: &str| process::parse_size(text, 1..=64 * MIB))]
    pub commit_bytes: u64,
    /// The most commits at once, 1 to 64. SQLite makes one.
    #[arg(long, env = "FENCEPOST_COMMITS_AT_ONCE", value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    pub commits_at_once: u32,
    /// The most submissions that wait for a commit, 1 to 100,000. One more gets 503 `overloaded`.
    #[arg(long, env = "FENCEPOST_COMMIT_QUEUE_ROWS", value_name = "N", default_value_t = 2_048)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub commit_queue_rows: u32,
    /// The most bytes of payloads that wait for a commit, up to 4 GiB; a larger payload waits alone.
    #[arg(
        long,
        env = "FENCEPOST_COMMIT_QUEUE_BYTES",
        value_name = "SIZE",
        default_value = "64MiB"
    )]
    #[arg(value_parser = |text: &str| process::parse_size(text, 1..=4_096 * MIB))]
    pub commit_queue_bytes: u64,
}

impl LimitArgs {
    /// The settings with these limits.
    pub(super) fn apply(&self, settings: Settings) -> Settings {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let count = |count: u32| bytes(count.into());
        let threads = self.api_threads.and_then(|threads| NonZeroUsize::new(threads.into()));
        Settings {
            connections_max: count(self.connections_max),
            workers: threads.unwrap_or(settings.workers),
            client_request_timeout: self.head_deadline,
            body_deadline: self.body_deadline,
            keep_alive: self.keep_alive,
            shutdown_timeout: self.api_stop_deadline,
            // Who waits for a limit is one who has a connection.
            rate_waiting_max: settings.rate_waiting_max.max(2 * count(self.connections_max)),
            commit: CommitLimits {
                flush_rows_max: settings.commit.flush_rows_max,
                flush_bytes_max: bytes(self.commit_bytes),
                queue_rows_max: count(self.commit_queue_rows),
                queue_bytes_max: bytes(self.commit_queue_bytes),
                flushes_max: count(self.commits_at_once),
            },
            ..settings
        }
    }
}

fn whole_seconds(text: &str) -> Result<Duration, String> {
    let duration = process::parse_duration(text, SECOND..=600 * SECOND)?;
    if duration.subsec_nanos() == 0 { Ok(duration) } else { Err("must be whole seconds".into()) }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        limits: LimitArgs,
    }

    #[test]
    fn a_limit_is_taken_or_refused_with_what_it_may_be() {
        let settings = |line: &[&str]| {
            let line = Line::try_parse_from([&["api"], line].concat())?;
            Ok::<_, clap::Error>(line.limits.apply(Settings::default()))
        };
        let taken =
            settings(&["--commits-at-once", "7", "--keep-alive", "2m", "--api-threads", "3"]);
        let taken = taken.unwrap();
        assert_eq!((taken.commit.flushes_max, taken.workers.get()), (7, 3));
        assert_eq!(taken.keep_alive, 120 * SECOND);
        for bad in [
            ["--connections-max", "15"],
            ["--api-threads", "0"],
            ["--head-deadline", "99ms"],
            ["--body-deadline", "11m"],
            ["--keep-alive", "0s"],
            ["--api-stop-deadline", "1500ms"],
            ["--commit-bytes", "65MiB"],
            ["--commits-at-once", "0"],
            ["--commit-queue-rows", "0"],
            ["--commit-queue-bytes", "5GiB"],
        ] {
            assert!(settings(&bad).is_err(), "{bad:?}");
        }
    }
}
