//! An application beside whose own migrations and pool the store lives.

use std::borrow::Cow;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr as _};
use store::outbox::Limits;
use store::postgres::PostgresStore;
use store::sealing::{Sealer, SealingKey};
use store::{Store as _, StoreOptions};

use super::{draft, postgres_pool, sqlite_pool};
use crate::fixture::Fixture;

/// The application's own migration has a number that one of ours has too.
fn migrations_of_the_application() -> Migrator {
    let text = AssertSqlSafe("create table submissions_of_mine (id bigint)").into_sql_str();
    let migration = Migration::new(1, Cow::Borrowed("mine"), MigrationType::Simple, text, false);
    Migrator { migrations: Cow::Owned(vec![migration]), ..Migrator::DEFAULT }
}

#[tokio::test]
async fn both_migrations_run_in_any_order_and_neither_sees_the_other() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let pool = postgres_pool(&db, 2).await?;
    migrations_of_the_application().run(&pool).await?;
    store::postgres::migrate(db.url()).await?;
    migrations_of_the_application().run(&pool).await?;
    let mine: Vec<(i64, String)> =
        sqlx::query_as("select version, description from public._sqlx_migrations")
            .fetch_all(&pool)
            .await?;
    assert_eq!(mine, [(1, "mine".to_owned())]);
    let ours: i64 =
        sqlx::query_scalar("select count(*) from fencepost.migrations").fetch_one(&pool).await?;
    assert_eq!(ours, i64::from(store::SCHEMA_VERSION));
    let strangers: i64 = sqlx::query_scalar(
        "select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'public' and c.relkind in ('r', 'p')
            and c.relname not in ('_sqlx_migrations', 'submissions_of_mine', 'orders')",
    )
    .fetch_one(&pool)
    .await?;
    assert_eq!(strangers, 0, "all of ours is in our schema");
    Ok(())
}

#[tokio::test]
async fn a_store_over_the_applications_pool_does_what_any_other_does() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let pool = postgres_pool(&db, 1).await?;
    let options = StoreOptions::new(Sealer::new(SealingKey::generate()?, Vec::new()));
    let store = PostgresStore::over(pool.clone(), options);
    store.check().await?;
    let endpoint = db.endpoint().await?;
    let mut tx = store::postgres::begin(&pool).await?;
    store::postgres::accept_in_tx(&mut tx, &draft(&endpoint, None, "{}"), &Limits::default())
        .await?;
    tx.commit().await?;
    let due = store::delivery::DueQuery { after: None, limit: 10, sweep: true };
    assert_eq!(store.find_due_endpoints(due).await?, [endpoint.key]);
    assert_eq!(pool.size(), 1, "claims run elsewhere, all else on the application's connection");
    Ok(())
}

/// On SQLite both share a file.
#[tokio::test]
async fn both_migrations_of_one_file_keep_their_own_books() -> anyhow::Result<()> {
    let db = Fixture::sqlite().await?;
    let pool = sqlite_pool(&db, 1).await?;
    migrations_of_the_application().run(&pool).await?;
    store::sqlite::migrate(db.url()).await?;
    migrations_of_the_application().run(&pool).await?;
    for (book, count) in [("_sqlx_migrations", 1), ("fencepost_migrations", store::SCHEMA_VERSION)]
    {
        let text = AssertSqlSafe(format!("select count(*) from {book}"));
        let applied: i32 = sqlx::query_scalar(text).fetch_one(&pool).await?;
        assert_eq!(applied, count, "{book}");
    }
    Ok(())
}

#[tokio::test]
async fn a_book_under_the_old_name_is_taken_over() -> anyhow::Result<()> {
    let db = Fixture::sqlite().await?;
    let pool = sqlite_pool(&db, 1).await?;
    sqlx::query("alter table fencepost_migrations rename to _sqlx_migrations")
        .execute(&pool)
        .await?;
    store::sqlite::migrate(db.url()).await?;
    migrations_of_the_application().run(&pool).await?;
    store::sqlite::migrate(db.url()).await?;
    Ok(())
}
