//! The one writer: every transaction that changes something runs here.
//!
//! * There is one connection, since SQLite has one writer at a time anyway: writers of this process
//!   wait for the connection, in order, and never for the file's lock.
//! * The lock is taken when the transaction begins. One that read first and then wrote would be
//!   refused if anybody had written in between.
//! * The lock is held from the first read to the commit, so what a transaction has read is still
//!   true when it writes: that is what settles every race here.
//! * The work runs on a task of its own, which goes on when its caller goes away: a transaction is
//!   always committed or rolled back, and never left open on the connection (sqlx 0.9.0 does that
//!   to a `begin` that is cancelled, its issue 4393).

use std::pin::Pin;
use std::time::Duration;

use sqlx::{Sqlite, SqliteConnection, SqlitePool, Transaction};
use time::OffsetDateTime;
use tracing::Instrument;

use super::codec::UnixMicros;
use super::errors::{Fault, is_busy, store_error};
use crate::StoreError;

/// How often the file's lock is tried, which only another process can hold.
const TRIES: u32 = 5;
/// The wait after the first try; each later one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(5);

/// Runs transactions one after another.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    pool: SqlitePool,
}

/// An open transaction that holds the write lock.
pub(super) struct WriteTransaction {
    transaction: Transaction<'static, Sqlite>,
    now: OffsetDateTime,
}

/// What a transaction does, and answers.
pub(super) type Work<'t, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 't>>;

/// Where statements run that need the write lock: in a transaction of this store, or of an application.
pub(super) trait Writing: Send {
    /// The database's clock, read once for the whole transaction.
    fn now(&self) -> OffsetDateTime;

    /// Where statements of this transaction run.
    fn connection(&mut self) -> &mut SqliteConnection;
}

impl WriteTransaction {
    pub(super) fn now(&self) -> OffsetDateTime {
        self.now
    }

    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }
}

impl Writing for WriteTransaction {
    fn now(&self) -> OffsetDateTime {
        self.now
    }

    fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }
}

/// The open transaction of an application.
pub(super) struct BorrowedTransaction<'c> {
    connection: &'c mut SqliteConnection,
    now: OffsetDateTime,
}

impl<'c> BorrowedTransaction<'c> {
    pub(super) async fn new(connection: &'c mut SqliteConnection) -> Result<Self, sqlx::Error> {
        let now = read_clock(connection).await?;
        Ok(Self { connection, now })
    }
}

impl Writing for BorrowedTransaction<'_> {
    fn now(&self) -> OffsetDateTime {
        self.now
    }

    fn connection(&mut self) -> &mut SqliteConnection {
        self.connection
    }
}

impl Writer {
    /// `pool` has a single connection.
    pub(super) fn new(pool: SqlitePool) -> Self {
        Self { pool }
    }

    /// Runs `work` in one transaction: committed if it succeeds, rolled back if not.
    pub(super) async fn run<T, W>(&self, operation: &'static str, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: for<'t> FnOnce(&'t mut WriteTransaction) -> Work<'t, T> + Send + 'static,
    {
        let pool = self.pool.clone();
        let transaction = async move {
            let transaction = begin(&pool).await?;
            commit_or_roll_back(transaction, work).await
        };
        match tokio::spawn(transaction.in_current_span()).await {
            Ok(answer) => answer.map_err(|fault| fault.in_operation(operation)),
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Nobody aborts the task: the runtime is shutting down.
                Err(ended) => Err(StoreError::Unavailable { operation, source: Box::new(ended) }),
            },
        }
    }
}

/// Takes the write lock, or gives up with the driver's "busy" after [`TRIES`].
async fn begin(pool: &SqlitePool) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
    let mut wait = FIRST_WAIT;
    for _ in 1..TRIES {
        match pool.begin_with("BEGIN IMMEDIATE").await {
            Err(error) if is_busy(&error) => {
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
            begun => return begun,
        }
    }
    pool.begin_with("BEGIN IMMEDIATE").await
}

async fn commit_or_roll_back<T, W>(
    mut transaction: Transaction<'static, Sqlite>,
    work: W,
) -> Result<T, Fault>
where
    W: for<'t> FnOnce(&'t mut WriteTransaction) -> Work<'t, T>,
{
    let now = read_clock(&mut transaction).await?;
    let mut open = WriteTransaction { transaction, now };
    let answer = work(&mut open).await;
    match answer {
        Ok(answer) => {
            open.transaction.commit().await?;
            Ok(answer)
        }
        Err(fault) => {
            // The fault matters more than that of a rollback, which the pool does again if need be.
            if let Err(error) = open.transaction.rollback().await {
                let error = store_error("writer::rollback", error).chain();
                tracing::warn!(error, "a transaction could not be rolled back");
            }
            Err(fault)
        }
    }
}

/// Whole milliseconds: SQLite's clock has no finer ones.
async fn read_clock(connection: &mut SqliteConnection) -> Result<OffsetDateTime, sqlx::Error> {
    sqlx::query_scalar(
        "-- sqlite::writer::read_clock
        SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000",
    )
    .fetch_one(connection)
    .await
    .map(|UnixMicros(now)| now)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use sqlx::{ConnectOptions, Connection};
    use tokio::sync::Notify;

    use super::*;
    use crate::StoreOptions;
    use crate::sealing::{Sealer, SealingKey};
    use crate::sqlite::pool::{self, connect_options};

    fn writer(path: &Path) -> Writer {
        let sealer = Sealer::new(SealingKey::generate().unwrap(), Vec::new());
        Writer::new(pool::writer(path, &StoreOptions::new(sealer)))
    }

    /// A database with a table of one number.
    async fn database(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("writer.db");
        let mut connection =
            connect_options(&path).create_if_missing(true).connect().await.unwrap();
        sqlx::query("CREATE TABLE counted (n INTEGER NOT NULL) STRICT")
            .execute(&mut connection)
            .await
            .unwrap();
        sqlx::query("INSERT INTO counted VALUES (0)").execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        path
    }

    async fn count(tx: &mut WriteTransaction) -> Result<i64, Fault> {
        sqlx::query("UPDATE counted SET n = n + 1").execute(tx.connection()).await?;
        Ok(sqlx::query_scalar("SELECT n FROM counted").fetch_one(tx.connection()).await?)
    }

    /// Case C098: no writer meets a lock that is not bounded and told.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn writers_beside_a_process_that_holds_the_lock_are_told_and_then_succeed() {
        let folder = tempfile::tempdir().unwrap();
        let path = database(folder.path()).await;
        let writer = writer(&path);
        let mut other = connect_options(&path).connect().await.unwrap();
        let held = other.begin_with("BEGIN IMMEDIATE").await.unwrap();

        let run = |writer: &Writer| {
            let writer = writer.clone();
            tokio::spawn(async move { writer.run("test", |tx| Box::pin(count(tx))).await })
        };
        let refused: Vec<_> = (0..40).map(|_| run(&writer)).collect();
        for one in refused {
            let answer = one.await.unwrap();
            assert!(matches!(answer, Err(StoreError::Contended { .. })), "{answer:?}");
        }

        held.rollback().await.unwrap();
        let served: Vec<_> = (0..40).map(|_| run(&writer)).collect();
        let mut counted = Vec::new();
        for one in served {
            counted.push(one.await.unwrap().unwrap());
        }
        counted.sort_unstable();
        assert_eq!(counted, (1..=40).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_transaction_that_fails_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(&database(folder.path()).await);
        let failed = writer
            .run("test", |tx| {
                Box::pin(async move {
                    count(tx).await?;
                    sqlx::query("SELECT nothing").execute(tx.connection()).await?;
                    Ok(())
                })
            })
            .await;
        assert!(matches!(failed, Err(StoreError::Refused { .. })), "{failed:?}");
        assert_eq!(writer.run("test", |tx| Box::pin(count(tx))).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_leaves_no_transaction_open() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(&database(folder.path()).await);
        let (begun, proceed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let signals = (Arc::clone(&begun), Arc::clone(&proceed));
        let caller = tokio::spawn({
            let writer = writer.clone();
            async move {
                writer
                    .run("test", move |tx| {
                        Box::pin(async move {
                            signals.0.notify_one();
                            signals.1.notified().await;
                            count(tx).await
                        })
                    })
                    .await
            }
        });
        begun.notified().await;
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        proceed.notify_one();
        // It waits for the connection, which the abandoned transaction gives back when it is done.
        assert_eq!(writer.run("test", |tx| Box::pin(count(tx))).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn the_clock_of_a_transaction_is_the_databases_in_whole_milliseconds() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(&database(folder.path()).await);
        let before = OffsetDateTime::now_utc() - Duration::from_millis(1);
        let now = writer.run("test", |tx| Box::pin(async move { Ok(tx.now()) })).await.unwrap();
        assert!(before <= now && now <= OffsetDateTime::now_utc());
        assert_eq!(now.nanosecond() % 1_000_000, 0);
    }
}
