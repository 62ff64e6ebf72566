//! What an open outbox transaction leaves alone.

use domain::application::DEFAULT_APPLICATION_KEY;
use store::endpoint::Pause;
use store::outbox::{Limits, SubmitError};

use super::{draft, postgres_pool};
use crate::fixture::Fixture;

/// It holds no lock that anybody else at its endpoint waits for.
#[tokio::test]
async fn an_open_transaction_delays_no_submitter_claimer_or_operator() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    db.submit(&endpoint).await?;
    let pool = postgres_pool(&db, 2).await?;
    let limits = Limits::default();
    let mut open = store::postgres::begin(&pool).await?;
    store::postgres::accept_in_tx(&mut open, &draft(&endpoint, Some("a"), "{}"), &limits).await?;

    // Each would meet the store's time-outs, and fail, if it waited for the open transaction.
    let mut other = store::postgres::begin(&pool).await?;
    sqlx::query("set local lock_timeout = '1s'").execute(&mut *other).await?;
    store::postgres::accept_in_tx(&mut other, &draft(&endpoint, Some("b"), "{}"), &limits).await?;
    other.commit().await?;
    db.submit(&endpoint).await?;
    assert_eq!(db.claim(&[&endpoint], 10).await?.1.claimed.len(), 3);
    let paused = Pause::ForGood;
    db.store.pause_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id, paused).await?;
    assert!(db.store.delete_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id).await?);
    open.commit().await?;
    assert_eq!(db.count("submissions").await?, 4);
    Ok(())
}

/// Nobody is told before the commit, and nobody after: NOTIFY would make commits wait for one another.
#[tokio::test]
async fn nothing_is_notified_in_the_applications_transaction() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let pool = postgres_pool(&db, 1).await?;
    let mut listener = sqlx::postgres::PgListener::connect(db.url()).await?;
    listener.listen_all(["fencepost_due", "end"]).await?;
    let mut tx = store::postgres::begin(&pool).await?;
    let draft = draft(&endpoint, None, "{}");
    store::postgres::accept_in_tx(&mut tx, &draft, &Limits::default()).await?;
    tx.commit().await?;
    sqlx::query("notify \"end\"").execute(&pool).await?;
    assert_eq!(listener.recv().await?.channel(), "end");
    Ok(())
}

#[tokio::test]
async fn a_missing_partition_is_named_and_not_made() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let pool = postgres_pool(&db, 1).await?;
    let partitions =
        "select count(*) from pg_inherits where inhparent = 'fencepost.submissions'::regclass";
    let drop_all = "do $$ declare name regclass; begin
        for name in select inhrelid::regclass from pg_inherits
            where inhparent = 'fencepost.submissions'::regclass
        loop execute format('drop table %s', name); end loop; end $$";
    sqlx::raw_sql(drop_all).execute(&pool).await?;
    let mut tx = store::postgres::begin(&pool).await?;
    let draft = draft(&endpoint, Some("order-1"), "{}");
    let refused = store::postgres::accept_in_tx(&mut tx, &draft, &Limits::default()).await;
    assert!(matches!(&refused, Err(SubmitError::PartitionMissing)), "{refused:?}");
    assert!(refused.is_err_and(|error| error.to_string().contains("fencepost migrate")));
    tx.rollback().await?;
    let made: i64 = sqlx::query_scalar(partitions).fetch_one(&pool).await?;
    assert_eq!(made, 0);
    assert_eq!(db.count("idempotency_keys").await?, 0, "nothing is half stored");
    Ok(())
}
