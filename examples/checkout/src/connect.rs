//! The application's own pool.

use anyhow::Context;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Executor, PgPool};

/// Waiting for a hot row has an end, whatever the isolation level of the database is by default.
const SESSION: &str = "SET lock_timeout = '60s'; SET statement_timeout = '90s'; \
    SET default_transaction_isolation = 'read committed'";

pub(crate) async fn connect(url: &str) -> anyhow::Result<PgPool> {
    let options: PgConnectOptions =
        url.parse().ok().context("the address is not of the form postgres://user@host/database")?;
    PgPoolOptions::new()
        .max_connections(2)
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute(SESSION).await.map(drop) })
        })
        .connect_with(options.application_name("checkout"))
        .await
        .context("the database cannot be reached")
}
