//! What a process is told of its store, beside its address.

use std::time::Duration;

use store::StoreOptions;
use store::sealing::Sealer;

use crate::parse_duration;

const DAY: Duration = Duration::from_hours(24);

/// Arguments of the store. Each has a default.
#[derive(Clone, clap::Args)]
#[group(id = "store")]
pub struct StoreArgs {
    /// Where the worker listens for wake-ups, if the database's own address leads to a pooler: the same
    /// PostgreSQL without one.
    #[arg(long, env = "FENCEPOST_LISTEN_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub listen_database_url: Option<String>,
    /// How long a failed delivery can be replayed and history is kept, 1 to 3,650 days, the same in
    /// every process.
    #[arg(long, env = "FENCEPOST_RETENTION", value_name = "TIME", default_value = "30d")]
    #[arg(value_parser = |text: &str| parse_duration(text, DAY..=3_650 * DAY))]
    pub retention: Duration,
    /// How long an idempotency key is remembered, from a minute to the retention, the same in every
    /// process.
    #[arg(long, env = "FENCEPOST_IDEMPOTENCY_WINDOW", value_name = "TIME", default_value = "30d")]
    #[arg(value_parser = |text: &str| parse_duration(text, Duration::from_mins(1)..=3_650 * DAY))]
    pub idempotency_window: Duration,
    /// The most connections to PostgreSQL for the statements of callers and of maintenance, 2 to 1,000.
    #[arg(long, env = "FENCEPOST_DATABASE_CONNECTIONS", value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub database_connections: u32,
    /// The most connections to PostgreSQL for claim and record, 1 to 1,000. One more listens.
    #[arg(long, env = "FENCEPOST_DISPATCH_CONNECTIONS", value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub dispatch_connections: u32,
    /// How long a statement waits for a free connection, 100 ms to 60 s.
    #[arg(long, env = "FENCEPOST_CONNECTION_WAIT", value_name = "TIME", default_value = "5s")]
    #[arg(value_parser = |text: &str| {
        parse_duration(text, Duration::from_millis(100)..=Duration::from_mins(1))
    })]
    pub connection_wait: Duration,
}

impl std::fmt::Debug for StoreArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may carry a password.
        f.debug_struct("StoreArgs")
            .field("retention", &self.retention)
            .field("idempotency_window", &self.idempotency_window)
            .field("database_connections", &self.database_connections)
            .field("dispatch_connections", &self.dispatch_connections)
            .field("connection_wait", &self.connection_wait)
            .finish_non_exhaustive()
    }
}

impl StoreArgs {
    /// The options that they ask for.
    ///
    /// # Errors
    /// A key would be remembered for longer than what it stands for is kept.
    pub fn options(&self, sealer: Sealer) -> anyhow::Result<StoreOptions> {
        anyhow::ensure!(
            self.idempotency_window <= self.retention,
            "--idempotency-window must not be longer than --retention"
        );
        Ok(StoreOptions {
            listen_url: self.listen_database_url.clone().map(Into::into),
            retention: self.retention,
            idempotency_window: self.idempotency_window,
            general_connections: self.database_connections,
            dispatch_connections: self.dispatch_connections,
            acquire_timeout: self.connection_wait,
            ..StoreOptions::new(sealer)
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use store::sealing::SealingKey;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        store: StoreArgs,
    }

    fn options(line: &[&str]) -> anyhow::Result<StoreOptions> {
        let line = Line::try_parse_from([&["x"], line].concat())?;
        line.store.options(Sealer::new(SealingKey::new(Box::new([7; 32])), Vec::new()))
    }

    #[test]
    fn the_arguments_have_the_defaults_of_the_options() {
        let given = options(&[]).unwrap();
        let defaults = StoreOptions::new(given.sealer.clone());
        let shown = |options: StoreOptions| {
            let StoreOptions { sealer: _, due_signal: _, .. } = &options;
            let StoreOptions { retention, idempotency_window, acquire_timeout, .. } = options;
            let connections = (options.general_connections, options.dispatch_connections);
            (retention, idempotency_window, acquire_timeout, connections)
        };
        assert_eq!(shown(given), shown(defaults));
    }

    #[test]
    fn what_is_outside_its_limits_is_refused_with_them() {
        for bad in [
            ["--retention", "23h"],
            ["--retention", "3651d"],
            ["--idempotency-window", "59s"],
            ["--database-connections", "1"],
            ["--dispatch-connections", "0"],
            ["--connection-wait", "99ms"],
        ] {
            assert!(options(&bad).is_err(), "{bad:?}");
        }
        let longer = options(&["--retention", "1d", "--idempotency-window", "2d"]);
        assert!(longer.unwrap_err().to_string().contains("--retention"));
        let both = options(&["--retention", "7d", "--idempotency-window", "1h"]).unwrap();
        assert_eq!(both.idempotency_window, Duration::from_hours(1));
    }

    #[test]
    fn a_password_is_not_shown() {
        let url = ["x", "--listen-database-url", "postgres://u:hunter2@h/d"];
        let line = Line::try_parse_from(url).unwrap();
        assert!(!format!("{line:?}").contains("hunter2"));
        let options = options(&url[1..]).unwrap();
        assert!(!format!("{options:?}").contains("hunter2"));
    }
}
