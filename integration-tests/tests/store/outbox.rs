//! Submissions in an application's own transaction (G8).

mod beside;
mod cancelled;
mod embedding;
mod key_races;

use std::str::FromStr as _;
use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{PgPool, Postgres, Sqlite, SqlitePool, Transaction};
use store::endpoint::Endpoint;
use store::outbox::{Draft, Limits, SubmitError, Submitted};

use crate::fixture::Fixture;

/// An application's pool, with its table of orders.
async fn postgres_pool(db: &Fixture, connections: u32) -> anyhow::Result<PgPool> {
    let pool = PgPoolOptions::new().max_connections(connections).connect(db.url()).await?;
    sqlx::query("create table if not exists orders (id bigint)").execute(&pool).await?;
    Ok(pool)
}

async fn sqlite_pool(db: &Fixture, connections: u32) -> anyhow::Result<SqlitePool> {
    let options = SqliteConnectOptions::from_str(db.url())?;
    let pool = SqlitePoolOptions::new().max_connections(connections).connect_with(options).await?;
    sqlx::query("create table if not exists orders (id integer)").execute(&pool).await?;
    Ok(pool)
}

async fn postgres_begin(pool: &PgPool) -> anyhow::Result<Transaction<'static, Postgres>> {
    Ok(store::postgres::begin(pool).await?)
}

async fn sqlite_begin(pool: &SqlitePool) -> anyhow::Result<Transaction<'static, Sqlite>> {
    Ok(store::sqlite::begin(pool, Duration::from_secs(1)).await?)
}

fn draft<'a>(endpoint: &'a Endpoint, key: Option<&'a str>, payload: &'static str) -> Draft<'a> {
    Draft {
        idempotency_key: key,
        content_type: Some("application/json"),
        ..Draft::new(endpoint.id.as_str(), payload)
    }
}

/// Declares each test once for each database. In the tests `pool` opens an application's pool,
/// `begin` a transaction on it, and `outbox` is the module of the store.
macro_rules! of_both_databases {
    ($($test:item)+) => {
        mod postgres {
            use store::postgres as outbox;

            use super::postgres_pool as pool;
            use super::postgres_begin as begin;
            use super::*;

            async fn fixture() -> anyhow::Result<Fixture> {
                Fixture::postgres().await
            }
            $($test)+
        }
        mod sqlite {
            use store::sqlite as outbox;

            use super::sqlite_begin as begin;
            use super::sqlite_pool as pool;
            use super::*;

            async fn fixture() -> anyhow::Result<Fixture> {
                Fixture::sqlite().await
            }
            $($test)+
        }
    };
}

of_both_databases! {
    #[tokio::test]
    async fn a_submission_exists_and_is_due_if_and_only_if_its_transaction_commits()
    -> anyhow::Result<()> {
        let db = fixture().await?;
        let endpoint = db.endpoint().await?;
        let pool = pool(&db, 2).await?;
        for (number, commits) in [(1_i64, false), (2, true)] {
            let mut tx = begin(&pool).await?;
            sqlx::query("insert into orders values ($1)").bind(number).execute(&mut *tx).await?;
            let draft = draft(&endpoint, Some("order"), "{}");
            let submitted = outbox::accept_in_tx(&mut tx, &draft, &Limits::default()).await?;
            assert!(!submitted.replayed);
            assert!(db.due_endpoints(true).await?.is_empty(), "nobody sees it before the commit");
            let ended = if commits { tx.commit().await } else { tx.rollback().await };
            ended?;
            let expected = i64::from(commits);
            let orders: i64 =
                sqlx::query_scalar("select count(*) from orders").fetch_one(&pool).await?;
            assert_eq!(orders, expected);
            for table in ["submissions", "deliveries", "idempotency_keys"] {
                assert_eq!(db.count(table).await?, expected, "{table}");
            }
        }
        assert_eq!(db.due_endpoints(false).await?, [endpoint.key]);
        Ok(())
    }

    #[tokio::test]
    async fn a_key_is_answered_as_over_http_whichever_way_came_first() -> anyhow::Result<()> {
        let db = fixture().await?;
        let endpoint = db.endpoint().await?;
        let pool = pool(&db, 2).await?;
        let limits = Limits::default();
        let over_http = crate::fixture::submission(&endpoint, Some("order-1"), b"{}")?;
        db.accept_one(&over_http).await?;

        let mut tx = begin(&pool).await?;
        let same = draft(&endpoint, Some("order-1"), "{}");
        let answer = outbox::accept_in_tx(&mut tx, &same, &limits).await?;
        assert!(answer.replayed);
        assert_eq!(answer.accepted.submission, over_http.id);
        assert_eq!(answer.accepted.deliveries, [over_http.delivery]);

        let other = draft(&endpoint, Some("order-1"), "[]");
        let refused = outbox::accept_in_tx(&mut tx, &other, &limits).await;
        assert!(matches!(&refused, Err(SubmitError::KeyReused { key }) if key == "order-1"));

        let new = draft(&endpoint, Some("order-2"), "{}");
        let first = outbox::accept_in_tx(&mut tx, &new, &limits).await?;
        let again = outbox::accept_in_tx(&mut tx, &new, &limits).await?;
        let expected = Submitted { accepted: first.accepted.clone(), replayed: true };
        assert_eq!(again, expected, "a transaction sees its own key");
        tx.commit().await?;
        let later = crate::fixture::submission(&endpoint, Some("order-2"), b"{}")?;
        let replayed = db.accept_one(&later).await?;
        assert_eq!(replayed, store::submission::Acceptance::Replayed(first.accepted));

        db.expire_key("order-2").await?;
        let mut tx = begin(&pool).await?;
        let renewed = draft(&endpoint, Some("order-2"), "[]");
        assert!(!outbox::accept_in_tx(&mut tx, &renewed, &limits).await?.replayed);
        tx.commit().await?;
        assert_eq!(db.count("submissions").await?, 3);
        Ok(())
    }

    #[tokio::test]
    async fn what_is_not_acceptable_is_named_by_its_field_and_stores_nothing() -> anyhow::Result<()> {
        let db = fixture().await?;
        let endpoint = db.endpoint().await?;
        let (deleted, id) = (db.endpoint().await?, endpoint.id.as_str());
        db.delete(&deleted).await?;
        let pool = pool(&db, 2).await?;
        let mut tx = begin(&pool).await?;
        let json = Draft { content_type: Some("application/json"), ..Draft::new(id, "{") };
        let large = "x".repeat(262_145);
        for (draft, field) in [
            (Draft { application_id: "nobody", ..Draft::new(id, "") }, "application_id"),
            (Draft::new("Nowhere", ""), "endpoint_id"),
            (Draft::new(deleted.id.as_str(), ""), "endpoint_id"),
            (Draft { idempotency_key: Some(""), ..Draft::new(id, "") }, "idempotency_key"),
            (Draft { event_type: Some("a..b"), ..Draft::new(id, "") }, "event_type"),
            (Draft { content_type: Some("json"), ..Draft::new(id, "") }, "content_type"),
            (json, "payload"),
            (Draft::new(id, large), "payload"),
        ] {
            let refused = outbox::accept_in_tx(&mut tx, &draft, &Limits::default()).await;
            let told = refused.map_err(|error| error.to_string());
            let named = format!("{field}: ");
            assert!(told.as_ref().is_err_and(|told| told.starts_with(&named)), "{told:?}");
        }
        // None of them is an error of the database: the transaction goes on.
        let draft = Draft::new(id, "y".repeat(262_144));
        outbox::accept_in_tx(&mut tx, &draft, &Limits::default()).await?;
        tx.commit().await?;
        assert_eq!(db.count("submissions").await?, 1);
        Ok(())
    }

    #[tokio::test]
    async fn a_closed_endpoint_takes_submissions_and_holds_them() -> anyhow::Result<()> {
        let db = fixture().await?;
        let endpoint = db.endpoint().await?;
        let pool = pool(&db, 2).await?;
        let cause = domain::endpoint::DisabledCause::Operator;
        assert!(db.store.disable_endpoint(endpoint.key, endpoint.version, cause).await?);
        let mut tx = begin(&pool).await?;
        outbox::accept_in_tx(&mut tx, &draft(&endpoint, None, "{}"), &Limits::default()).await?;
        tx.commit().await?;
        assert_eq!(db.count("deliveries").await?, 1);
        assert!(db.due_endpoints(true).await?.is_empty());
        Ok(())
    }
}
