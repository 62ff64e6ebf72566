//! An application's future that is dropped at any await.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use anyhow::ensure;
use sqlx::postgres::PgPoolOptions;
use store::endpoint::Endpoint;
use store::outbox::Limits;

use super::{draft, postgres_pool, sqlite_pool};
use crate::fixture::Fixture;

/// More awaits than any of these futures has: each statement is a few.
const POLLS_MAX: usize = 500;

/// Polls the future so many times and drops it then, in the middle of whatever it waits for.
async fn dropped_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

async fn on_postgres(pool: &sqlx::PgPool, endpoint: &Endpoint, key: &str) -> anyhow::Result<()> {
    let mut tx = store::postgres::begin(pool).await?;
    sqlx::query("insert into orders values (1)").execute(&mut *tx).await?;
    let draft = draft(endpoint, Some(key), "{}");
    store::postgres::accept_in_tx(&mut tx, &draft, &Limits::default()).await?;
    tx.commit().await?;
    Ok(())
}

#[tokio::test]
async fn a_dropped_future_leaves_no_transaction_in_the_pool_on_postgres() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    postgres_pool(&db, 1).await?.close().await;
    let options: sqlx::postgres::PgConnectOptions = db.url().parse()?;
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect_with(options.application_name("dropped"))
        .await?;
    let mut looking = db.session().await?;
    let mut completed = None;
    for polls in 1..POLLS_MAX {
        let key = format!("order-{polls}");
        completed = dropped_after(polls, on_postgres(&pool, &endpoint, &key)).await;
        // The one connection comes back, and what was sent on it before is done.
        sqlx::query("select 1").execute(&pool).await?;
        let open: i64 = sqlx::query_scalar(
            "select count(*) from pg_stat_activity
            where application_name = 'dropped' and state like 'idle in transaction%'",
        )
        .fetch_one(&mut looking)
        .await?;
        ensure!(open == 0, "a transaction is open after {polls} polls");
        if completed.is_some() {
            break;
        }
    }
    completed.expect("it ends at last")?;
    let orders: i64 = sqlx::query_scalar("select count(*) from orders").fetch_one(&pool).await?;
    assert!(orders >= 1);
    assert_eq!(db.count("submissions").await?, orders, "both or neither");
    assert_eq!(db.count("deliveries").await?, orders);
    Ok(())
}

async fn on_sqlite(pool: &sqlx::SqlitePool, endpoint: &Endpoint, key: &str) -> anyhow::Result<()> {
    let mut tx = store::sqlite::begin(pool, std::time::Duration::from_secs(1)).await?;
    sqlx::query("insert into orders values (1)").execute(&mut *tx).await?;
    let draft = draft(endpoint, Some(key), "{}");
    store::sqlite::accept_in_tx(&mut tx, &draft, &Limits::default()).await?;
    tx.commit().await?;
    Ok(())
}

#[tokio::test]
async fn a_dropped_future_leaves_no_transaction_in_the_pool_on_sqlite() -> anyhow::Result<()> {
    let db = Fixture::sqlite().await?;
    let endpoint = db.endpoint().await?;
    let pool = sqlite_pool(&db, 1).await?;
    let mut completed = None;
    for polls in 1..POLLS_MAX {
        let key = format!("order-{polls}");
        completed = dropped_after(polls, on_sqlite(&pool, &endpoint, &key)).await;
        // It fails inside of an open transaction.
        let mut connection = pool.acquire().await?;
        sqlx::query("begin immediate").execute(&mut *connection).await?;
        sqlx::query("rollback").execute(&mut *connection).await?;
        if completed.is_some() {
            break;
        }
    }
    completed.expect("it ends at last")?;
    let orders: i64 = sqlx::query_scalar("select count(*) from orders").fetch_one(&pool).await?;
    assert!(orders >= 1);
    assert_eq!(db.count("submissions").await?, orders, "both or neither");
    assert_eq!(db.count("deliveries").await?, orders);
    Ok(())
}
