//! Begins a transaction that is never left open on its connection.

use std::time::{Duration, Instant};

use sqlx::{Sqlite, SqlitePool, Transaction};

use super::errors::{is_busy, store_error};
use crate::StoreError;

const OPERATION: &str = "begin";
/// The longest wait between two tries.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// Begins a transaction that holds the write lock, on a connection of the application's pool. It waits
/// about `patience` for those of others. Then the answer is [`StoreError::Contended`]: nothing was begun,
/// and whoever asked may come again.
///
/// A transaction that read first would be refused at its first write if anybody had written in between.
/// SQLite queues nobody: who waits tries again, after a random time that grows. The pool's own
/// `busy_timeout` comes on top.
///
/// A caller that goes away leaves nothing open: it is begun on a task of its own, which ends it if
/// nobody takes it. (A `begin` of sqlx 0.9.0 that is dropped half way leaves its transaction open on
/// the connection, which goes back to the pool like that: its issue 4393.)
pub async fn begin(
    pool: &SqlitePool,
    patience: Duration,
) -> Result<Transaction<'static, Sqlite>, StoreError> {
    let pool = pool.clone();
    let begun = tokio::spawn(async move { begin_in_time(&pool, patience).await });
    match begun.await {
        Ok(begun) => begun,
        Err(ended) => {
            Err(StoreError::Unavailable { operation: OPERATION, source: Box::new(ended) })
        }
    }
}

async fn begin_in_time(
    pool: &SqlitePool,
    patience: Duration,
) -> Result<Transaction<'static, Sqlite>, StoreError> {
    let began = Instant::now();
    let mut wait = Duration::from_millis(2);
    loop {
        match pool.begin_with("BEGIN IMMEDIATE").await {
            Err(error) if is_busy(&error) && began.elapsed() < patience => {
                tokio::time::sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
                wait = (wait * 2).min(WAIT_MAX);
            }
            begun => return begun.map_err(|error| store_error(OPERATION, error)),
        }
    }
}
