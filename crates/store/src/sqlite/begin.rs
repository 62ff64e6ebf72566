//! Begins a transaction that is never left open on its connection.

use std::io;

use sqlx::{Sqlite, SqlitePool, Transaction};

/// Begins a transaction that holds the write lock, on a connection of the application's pool.
///
/// A caller that goes away leaves nothing open: it is begun on a task of its own, which ends it if
/// nobody takes it. (A `begin` of sqlx 0.9.0 that is dropped half way leaves its transaction open on
/// the connection, which goes back to the pool like that: its issue 4393.)
pub async fn begin(pool: &SqlitePool) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
    let pool = pool.clone();
    let begun = tokio::spawn(async move { pool.begin_with("BEGIN IMMEDIATE").await });
    begun.await.map_err(|ended| sqlx::Error::Io(io::Error::other(ended)))?
}
