//! Connections that are kept between two statements (PostgreSQL).

use std::sync::Arc;

use futures_util::future::join_all;
use store::sealing::{Sealer, SealingKey};
use store::{StoreError, StoreOptions};

use crate::fixture::Fixture;

async fn store_of_two(db: &Fixture) -> anyhow::Result<Arc<dyn store::Store>> {
    let mut options = StoreOptions::new(Sealer::new(SealingKey::generate()?, Vec::new()));
    options.general_connections = 2;
    Ok(store::open(db.url(), options).await?)
}

const OURS: &str = "from pg_stat_activity
    where datname = current_database() and application_name = 'fencepost'
        and query like '-- postgres::schema::check%'";

/// Every caller gets a turn, and no more connections are opened than there may be.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_share_the_few_connections() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let store = store_of_two(&db).await?;
    for _ in 0..3 {
        for answer in join_all((0..100).map(|_| store.check())).await {
            answer?;
        }
    }
    let count = sqlx::AssertSqlSafe(format!("select count(*) {OURS}"));
    let open: i64 = sqlx::query_scalar(count).fetch_one(&mut db.session().await?).await?;
    assert!((1..=2).contains(&open), "{open}");
    Ok(())
}

/// One that is kept and was cut meanwhile costs one statement, and is not kept again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_connection_that_was_cut_costs_no_more_than_one_statement() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let store = store_of_two(&db).await?;
    for _ in 0..3 {
        for answer in join_all((0..10).map(|_| store.check())).await {
            answer?;
        }
        let cut = sqlx::AssertSqlSafe(format!("select pg_terminate_backend(pid, 10000) {OURS}"));
        let cut: Vec<bool> = sqlx::query_scalar(cut).fetch_all(&mut db.session().await?).await?;
        assert!(!cut.is_empty() && cut.iter().all(|ended| *ended));
        let mut failed = 0;
        for _ in 0..10 {
            match store.check().await {
                Err(StoreError::Unavailable { .. }) => failed += 1,
                answer => answer?,
            }
        }
        assert!(failed <= cut.len(), "{failed} statements failed for {} connections", cut.len());
    }
    Ok(())
}
