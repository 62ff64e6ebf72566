//! What the api is told when it starts.

mod limits;
mod rates;

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::time::Duration;

use domain::destination::AddressPolicy;
use domain::rate_limit::RateLimit;
use domain::submission::content::FormLimits;
use process::AddressPolicyArgs;
use store::sealing::Sealer;

pub use self::limits::LimitArgs;
pub use self::rates::{Rate, RateArgs, SourceSecretArg};
use crate::{CommitLimits, SourceLimit};

/// The largest body limit that can be configured: 64 MiB.
const BODY_LIMIT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Settings of the api. Every one of them bounds what a stranger can make the process hold.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where callers are served. Port 0 lets the system choose one.
    pub listen: SocketAddr,
    /// Where readiness is told, to be reached by operators only.
    pub private_listen: SocketAddr,
    /// The most bytes of a submission's payload. 256 KiB by default.
    pub body_limit_bytes: usize,
    /// The most bytes of any other body. 64 KiB by default.
    pub management_body_limit_bytes: usize,
    /// How long the body of one request may take to arrive, and what is written of an answer at once to
    /// be taken. 30 s by default.
    pub body_deadline: Duration,
    /// How long the head of a connection's first request may take to arrive. 10 s by default. That of a
    /// later one has the keep-alive time besides.
    pub client_request_timeout: Duration,
    /// How long an idle connection is kept open. 75 s by default.
    pub keep_alive: Duration,
    /// How long the rest of a body is read and thrown away after its request was answered, so that
    /// the answer arrives and is not lost to a reset. 5 s by default.
    pub linger: Duration,
    /// The most open connections. Beyond it they wait in the backlog of the system. 1,024 by
    /// default, so that payloads being received take 256 MiB at most.
    pub connections_max: usize,
    /// Threads that serve callers. One per processor by default.
    pub workers: NonZeroUsize,
    /// How long requests in flight may go on once the api stops. Whole seconds, 30 by default.
    pub shutdown_timeout: Duration,
    /// How submissions share commits.
    pub commit: CommitLimits,
    /// How many submissions one address may send. None by default, since it needs a secret; the
    /// programs limit it to 6,000 per 60 s.
    pub source_limit: Option<SourceLimit>,
    /// How many submissions one API key may send. None by default.
    pub key_limit: Option<RateLimit>,
    /// The most requests that wait to be told whether they are within a rate limit. 2,048 by default:
    /// more than there are connections.
    pub rate_waiting_max: usize,
    /// What a form may hold.
    pub form: FormLimits,
    /// Where endpoints may lead.
    pub address_policy: AddressPolicy,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            private_listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8081)),
            body_limit_bytes: 256 * 1024,
            management_body_limit_bytes: 64 * 1024,
            body_deadline: Duration::from_secs(30),
            client_request_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            linger: Duration::from_secs(5),
            connections_max: 1024,
            workers: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            shutdown_timeout: Duration::from_secs(30),
            commit: CommitLimits::default(),
            source_limit: None,
            key_limit: None,
            rate_waiting_max: 2_048,
            form: FormLimits::default(),
            address_policy: AddressPolicy::default(),
        }
    }
}

/// Arguments of the api.
#[derive(Debug, Clone, clap::Args)]
#[group(id = "api")]
#[command(next_help_heading = "Api")]
pub struct Args {
    /// Where callers are served.
    #[arg(
        long,
        env = "FENCEPOST_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080"
    )]
    pub listen: SocketAddr,
    /// Where readiness is told; keep it away from callers.
    #[arg(
        long,
        env = "FENCEPOST_PRIVATE_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8081"
    )]
    pub private_listen: SocketAddr,
    /// The most bytes of a submission's payload, at most 64 MiB.
    #[arg(
        long,
        env = "FENCEPOST_BODY_LIMIT",
        value_name = "SIZE",
        default_value = "256KiB",
        value_parser = |text: &str| process::parse_size(text, 1..=BODY_LIMIT_BYTES_MAX)
    )]
    pub body_limit: u64,
    /// How many submissions one commit stores at most, 1 to 1,000: those that arrive during a commit
    /// share the next.
    #[arg(
        long,
        env = "FENCEPOST_COMMIT_ROWS",
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u16).range(1..=1_000)
    )]
    pub commit_rows: u16,
    /// How much may come in.
    #[command(flatten)]
    pub rates: RateArgs,
    /// How much it takes on at once.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Where endpoints may lead.
    #[command(flatten)]
    pub address_policy: AddressPolicyArgs,
}

impl Args {
    /// The settings that they ask for. The sealer gives the secret of the source limit, if there is
    /// none of its own.
    #[must_use]
    pub fn settings(&self, sealer: &Sealer) -> Settings {
        let settings = Settings {
            source_limit: self.rates.source_limit(sealer),
            key_limit: self.rates.key_rate.limit(),
            listen: self.listen,
            private_listen: self.private_listen,
            body_limit_bytes: usize::try_from(self.body_limit).unwrap_or(usize::MAX),
            address_policy: self.address_policy.policy(),
            commit: CommitLimits {
                flush_rows_max: self.commit_rows.into(),
                ..CommitLimits::default()
            },
            ..Settings::default()
        };
        self.limits.apply(settings)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use store::sealing::SealingKey;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_arguments_have_the_defaults_of_the_settings() {
        let sealer = Sealer::new(SealingKey::generate().unwrap(), Vec::new());
        let mut settings = Line::parse_from(["api"]).args.settings(&sealer);
        let source_limit = settings.source_limit.take().unwrap();
        assert_eq!((source_limit.limit, source_limit.trusted_hops), (RateLimit::SOURCE_DEFAULT, 0));
        assert_eq!(format!("{settings:?}"), format!("{:?}", Settings::default()));
    }

    #[test]
    fn a_body_limit_of_nothing_or_of_more_than_64_mib_is_refused() {
        for bad in ["0", "67108865", "-1", "65MiB", "256kb"] {
            assert!(Line::try_parse_from(["api", "--body-limit", bad]).is_err(), "{bad}");
        }
        let line = Line::try_parse_from(["api", "--body-limit", "64MiB"]);
        assert_eq!(line.ok().map(|line| line.args.body_limit), Some(67_108_864));
    }
}
