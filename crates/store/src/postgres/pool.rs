//! Connections and their session settings.
//!
//! The settings are made after connecting and not in the start-up packet, which a transaction pooler
//! would refuse.

mod bounded;
mod kept;

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Executor};

pub(super) use self::bounded::Pool;
use crate::{StoreError, StoreOptions};

/// No statement of ours runs long: one that does is stopped, and so is one that waits for a lock. They
/// are written for READ COMMITTED: in a stricter level who waited is refused instead of going on.
const TIMEOUTS: &str = "SET statement_timeout = '10s'; SET lock_timeout = '2s'; \
    SET idle_in_transaction_session_timeout = '10s'; SET jit = off; \
    SET default_transaction_isolation = 'read committed';";

/// Statements must use their indexes whatever the statistics say: the tables are tiny at one moment and
/// full of dead rows at another, and a partition is empty when its plan is made. A generic plan saves
/// planning, a fifth of the cost of claim and record, and is the one that a test can look at.
pub const STABLE_PLANS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; \
    SET plan_cache_mode = force_generic_plan;";

pub(super) fn connect_options(url: &str) -> Result<PgConnectOptions, StoreError> {
    PgConnectOptions::from_str(url)
        .map(|options| options.application_name("fencepost").disable_statement_logging())
        // The driver's text may repeat the address, which carries a password.
        .map_err(|_| StoreError::Address {
            message: "the database address is not of the form \
                      postgres://user:password@host:port/database"
                .to_owned(),
        })
}

/// Where the connections of an application's pool lead.
pub(super) fn connect_options_of(connections: &sqlx::PgPool) -> PgConnectOptions {
    let options = connections.connect_options().as_ref().clone();
    options.application_name("fencepost").disable_statement_logging()
}

/// An application's pool, with our bound on each statement.
pub(super) fn bounded(connections: sqlx::PgPool, options: &StoreOptions) -> Pool {
    Pool::shared(connections, options.statement_deadline)
}

fn pool(options: &StoreOptions, connections: u32) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(options.acquire_timeout)
        .idle_timeout(Duration::from_mins(5))
        .max_lifetime(Duration::from_mins(30))
        // A ping before each use would double the round trips; a broken connection shows as an
        // error that the caller repeats anyway.
        .test_before_acquire(false)
}

/// For the api's statements.
pub(super) fn general(connect: PgConnectOptions, options: &StoreOptions) -> Pool {
    stable(connect, options, options.general_connections)
}

/// For what the worker does again and again.
pub(super) fn dispatch(connect: PgConnectOptions, options: &StoreOptions) -> Pool {
    stable(connect, options, options.dispatch_connections)
}

fn stable(connect: PgConnectOptions, options: &StoreOptions, connections: u32) -> Pool {
    let connections = pool(options, connections)
        .after_connect(|connection, _| {
            Box::pin(async move {
                connection.execute(TIMEOUTS).await?;
                connection.execute(STABLE_PLANS).await.map(drop)
            })
        })
        .connect_lazy_with(connect);
    Pool::own(connections, options.statement_deadline)
}

/// One connection, which lives as long as somebody listens on it.
pub(super) fn listening(connect: PgConnectOptions, options: &StoreOptions) -> sqlx::PgPool {
    pool(options, 1).idle_timeout(None).max_lifetime(None).connect_lazy_with(connect)
}
