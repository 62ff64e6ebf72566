//! What the bench does with PostgreSQL beside the product: fills and empties tables, counts, and
//! measures what the database does alone.

mod accepting;
mod committing;
mod delivering;
mod fill;
mod looking;

use std::str::FromStr as _;
use std::time::Duration;

use anyhow::Context as _;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions as _, Executor as _};

use super::usage::Postmaster;

pub(super) use self::fill::Backlog;

/// How many sessions the database alone is measured with.
pub(super) const SESSIONS: u32 = 4;
/// How many rows one statement has then.
pub(super) const ROWS: usize = 100;

/// Plain connections to the scratch database.
#[derive(Debug, Clone)]
pub(super) struct Database {
    pool: PgPool,
    /// None where the server does not run on this machine, or its processes cannot be seen.
    postmaster: Option<Postmaster>,
}

/// What the server has done so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    pub(super) wal_bytes: i64,
    /// Of the scratch database. Each statement of the product is one transaction, nearly. A session
    /// tells them with a delay of up to a second, and when it ends.
    pub(super) transactions: i64,
}

impl Database {
    pub(super) async fn open(url: &str) -> anyhow::Result<Self> {
        // The driver's text may repeat the address, which carries a password.
        let options = PgConnectOptions::from_str(url).ok().context("not an address")?;
        let options = options.application_name("fencepost bench").disable_statement_logging();
        let pool = sessions(SESSIONS + 1, options).await?;
        let session: (i32, String) = sqlx::query_as(
            "-- proof::bench::database::open
            SELECT pg_backend_pid(), current_database()::text",
        )
        .fetch_one(&pool)
        .await?;
        let postmaster = Postmaster::of_session(session.0, &session.1);
        Ok(Self { pool, postmaster })
    }

    /// So many sessions more, in a pool of their own.
    pub(super) async fn more_sessions(&self, count: u32) -> anyhow::Result<PgPool> {
        sessions(count, self.pool.connect_options().as_ref().clone()).await
    }

    /// Processor time of the whole server.
    pub(super) fn used(&self) -> Option<Duration> {
        self.postmaster?.used()
    }

    pub(super) async fn done(&self) -> anyhow::Result<Done> {
        let (wal_bytes, transactions) = sqlx::query_as(
            "-- proof::bench::database::done
            SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, xact_commit
            FROM pg_stat_database WHERE datname = current_database()",
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(Done { wal_bytes, transactions })
    }

    /// What the figures depend on.
    pub(super) async fn settings(&self) -> anyhow::Result<Vec<(String, String)>> {
        let settings = sqlx::query_as(
            "-- proof::bench::database::settings
            SELECT name, current_setting(name) FROM pg_settings
            WHERE name IN ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes',
                'shared_buffers', 'max_wal_size', 'wal_sync_method')
            ORDER BY name",
        );
        Ok(settings.fetch_all(&self.pool).await?)
    }

    /// Deletes all submissions and all that is owed for them; endpoints and keys stay.
    pub(super) async fn clear(&self) -> anyhow::Result<()> {
        self.pool
            .execute(
                "TRUNCATE fencepost.submissions, fencepost.deliveries,
                    fencepost.settled_deliveries, fencepost.attempts,
                    fencepost.idempotency_keys, fencepost.rate_limit_counters;
                UPDATE fencepost.endpoint_schedule
                SET in_flight = 0, low_water = '-infinity', lease_low = '-infinity'",
            )
            .await?;
        Ok(())
    }
}

async fn sessions(count: u32, options: PgConnectOptions) -> anyhow::Result<PgPool> {
    let pool = PgPoolOptions::new()
        .max_connections(count)
        .acquire_timeout(Duration::from_secs(30))
        .after_connect(|connection, _| {
            Box::pin(async move {
                connection.execute("SET synchronous_commit = on; SET jit = off").await?;
                Ok(())
            })
        })
        .connect_with(options);
    Ok(pool.await?)
}
