//! Plain connections, beside those of the store: for naive forms, for aging rows, for looking.
//!
//! One text serves both engines: `{}` stands for the schema, `{now}` for the clock, and what is read is
//! cast to `bigint`, `text` or left a UUID.

use std::time::Duration;

use anyhow::Context as _;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgPoolOptions};
use sqlx::query::Query;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Executor as _, PgConnection, Postgres, Row as _, Sqlite,
    SqliteConnection,
};
use store::{Backend, sqlite};
use uuid::Uuid;

/// How long a connection waits for another one's locks, and for a place in the pool.
const PATIENCE: Duration = Duration::from_secs(30);

/// As the store's sessions: in a stricter level who waited is refused instead of going on.
const SESSION: &str = "SET statement_timeout = '30s'; SET lock_timeout = '30s'; \
    SET default_transaction_isolation = 'read committed';";

/// Connections to a scratch database.
#[derive(Debug, Clone)]
pub(crate) enum Connections {
    Postgres(sqlx::PgPool),
    Sqlite(sqlx::SqlitePool),
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) enum Connection {
    Postgres(PoolConnection<Postgres>),
    Sqlite(PoolConnection<Sqlite>),
}

/// What a statement is given.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Uuid(Uuid),
    Text(&'a str),
    Integer(i64),
}

/// A row that was read.
#[derive(Debug)]
pub(crate) enum Row {
    Postgres(sqlx::postgres::PgRow),
    Sqlite(sqlx::sqlite::SqliteRow),
}

impl Connections {
    /// Up to so many connections, made when they are wanted. `busy` is how long one waits for the lock
    /// of an SQLite file by itself.
    pub(crate) fn open(url: &str, connections_max: usize, busy: Duration) -> anyhow::Result<Self> {
        let connections_max = u32::try_from(connections_max)?;
        Ok(match Backend::of_url(url)? {
            Backend::Postgres => {
                let options: PgConnectOptions =
                    url.parse().ok().context("the address of the scratch database")?;
                // Contestants wait for one another: a slow statement is what is wanted.
                let options =
                    options.application_name("fencepost proof").disable_statement_logging();
                let pool = PgPoolOptions::new()
                    .max_connections(connections_max)
                    .acquire_timeout(PATIENCE)
                    .after_connect(|connection, _| {
                        Box::pin(async move { connection.execute(SESSION).await.map(drop) })
                    });
                Self::Postgres(pool.connect_lazy_with(options))
            }
            Backend::Sqlite => {
                let options = SqliteConnectOptions::new()
                    .filename(sqlite::path_of_url(url)?)
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Full)
                    .busy_timeout(busy)
                    .disable_statement_logging();
                let pool = SqlitePoolOptions::new()
                    .max_connections(connections_max)
                    .acquire_timeout(PATIENCE);
                Self::Sqlite(pool.connect_lazy_with(options))
            }
        })
    }

    pub(crate) async fn get(&self) -> anyhow::Result<Connection> {
        Ok(match self {
            Self::Postgres(pool) => Connection::Postgres(pool.acquire().await?),
            Self::Sqlite(pool) => Connection::Sqlite(pool.acquire().await?),
        })
    }

    /// So many at once.
    pub(crate) async fn get_many(&self, count: usize) -> anyhow::Result<Vec<Connection>> {
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            connections.push(self.get().await.context("not enough connections")?);
        }
        Ok(connections)
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Postgres(pool) => pool.close().await,
            Self::Sqlite(pool) => pool.close().await,
        }
    }
}

/// Binds each value in its turn.
macro_rules! bound {
    ($text:expr, $values:expr) => {
        $values.iter().fold(sqlx::query(AssertSqlSafe($text)), |query, value| match *value {
            Value::Uuid(uuid) => query.bind(uuid),
            Value::Text(text) => query.bind(text.to_owned()),
            Value::Integer(integer) => query.bind(integer),
        })
    };
}

impl Connection {
    /// Runs a statement, and answers how many rows it changed.
    pub(crate) async fn run(&mut self, text: &str, values: &[Value<'_>]) -> sqlx::Result<u64> {
        match self {
            Self::Postgres(connection) => run_on_postgres(connection, text, values).await,
            Self::Sqlite(connection) => run_on_sqlite(connection, text, values).await,
        }
    }

    /// All rows of a statement.
    pub(crate) async fn read(
        &mut self,
        text: &str,
        values: &[Value<'_>],
    ) -> sqlx::Result<Vec<Row>> {
        Ok(match self {
            Self::Postgres(connection) => {
                let query: Query<'_, Postgres, PgArguments> = bound!(of_postgres(text), values);
                connection.fetch_all(query).await?.into_iter().map(Row::Postgres).collect()
            }
            Self::Sqlite(connection) => {
                let query: Query<'_, Sqlite, SqliteArguments> = bound!(of_sqlite(text), values);
                connection.fetch_all(query).await?.into_iter().map(Row::Sqlite).collect()
            }
        })
    }

    /// The one row of a statement.
    pub(crate) async fn read_one(
        &mut self,
        text: &str,
        values: &[Value<'_>],
    ) -> anyhow::Result<Row> {
        self.read(text, values).await?.pop().context("no row was found")
    }
}

impl Row {
    pub(crate) fn integer(&self, column: &str) -> sqlx::Result<i64> {
        match self {
            Self::Postgres(row) => row.try_get(column),
            Self::Sqlite(row) => row.try_get(column),
        }
    }

    pub(crate) fn uuid(&self, column: &str) -> sqlx::Result<Uuid> {
        match self {
            Self::Postgres(row) => row.try_get(column),
            Self::Sqlite(row) => row.try_get(column),
        }
    }

    pub(crate) fn text(&self, column: &str) -> sqlx::Result<String> {
        match self {
            Self::Postgres(row) => row.try_get(column),
            Self::Sqlite(row) => row.try_get(column),
        }
    }
}

pub(crate) async fn run_on_postgres(
    connection: &mut PgConnection,
    text: &str,
    values: &[Value<'_>],
) -> sqlx::Result<u64> {
    let query: Query<'_, Postgres, PgArguments> = bound!(of_postgres(text), values);
    Ok(connection.execute(query).await?.rows_affected())
}

pub(crate) async fn run_on_sqlite(
    connection: &mut SqliteConnection,
    text: &str,
    values: &[Value<'_>],
) -> sqlx::Result<u64> {
    let query: Query<'_, Sqlite, SqliteArguments> = bound!(of_sqlite(text), values);
    Ok(connection.execute(query).await?.rows_affected())
}

fn of_postgres(text: &str) -> String {
    text.replace("{now}", "statement_timestamp()")
        .replace("{five_minutes}", "interval '5 minutes'")
        .replace("{uuid}", "uuid")
        .replace("{}", "fencepost.")
}

/// Instants are integers there, in microseconds.
fn of_sqlite(text: &str) -> String {
    text.replace("{now}", "(CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000)")
        .replace("{five_minutes}", "300000000")
        .replace("{uuid}", "blob")
        .replace("{}", "")
}
