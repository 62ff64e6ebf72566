//! Two transactions with one key, in each isolation level.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use sqlx::PgPool;
use store::endpoint::Endpoint;
use store::outbox::{Limits, SubmitError, Submitted};
use store::submission::Acceptance;
use tokio::task::JoinHandle;

use super::{draft, postgres_pool};
use crate::fixture::{Fixture, submission};
use crate::races::session::until_it_waits;

const WAITING: &str = "postgres::submission::accept::insert_new";

/// Submits under the key `order-1` in a transaction that sees what there was before the call.
async fn second(
    pool: &PgPool,
    endpoint: &Endpoint,
    isolation: &'static str,
    payload: &'static str,
) -> anyhow::Result<JoinHandle<Result<Submitted, SubmitError>>> {
    let mut tx = store::postgres::begin(pool).await?;
    sqlx::raw_sql(isolation).execute(&mut *tx).await?;
    sqlx::query("select count(*) from orders").execute(&mut *tx).await?;
    let endpoint = endpoint.clone();
    Ok(tokio::spawn(async move {
        let draft = draft(&endpoint, Some("order-1"), payload);
        let answer = store::postgres::accept_in_tx(&mut tx, &draft, &Limits::default()).await?;
        tx.commit().await.map_err(|error| SubmitError::KeyContended {
            key: "not committed".to_owned(),
            source: error.into(),
        })?;
        Ok(answer)
    }))
}

/// The first holds the key in an open transaction while the second asks for it.
async fn contest(
    db: &Fixture,
    isolation: &'static str,
    payload: &'static str,
    first_commits: bool,
) -> anyhow::Result<(Submitted, Result<Submitted, SubmitError>)> {
    let endpoint = db.endpoint().await?;
    let pool = postgres_pool(db, 3).await?;
    let mut tx = store::postgres::begin(&pool).await?;
    let held = draft(&endpoint, Some("order-1"), "{}");
    let first = store::postgres::accept_in_tx(&mut tx, &held, &Limits::default()).await?;
    let second = second(&pool, &endpoint, isolation, payload).await?;
    until_it_waits(&mut db.session().await?, WAITING).await?;
    let ended = if first_commits { tx.commit().await } else { tx.rollback().await };
    ended?;
    Ok((first, second.await?))
}

const READ_COMMITTED: &str = "set transaction isolation level read committed";
const STRICTER: [&str; 2] = [
    "set transaction isolation level repeatable read",
    "set transaction isolation level serializable",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_second_with_a_key_waits_for_the_first_and_gets_its_answer() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let (first, second) = contest(&db, READ_COMMITTED, "{}", true).await?;
    assert_eq!(second?, Submitted { accepted: first.accepted, replayed: true });
    assert_eq!(db.count("submissions").await?, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_with_other_content_is_refused_when_the_first_commits() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let (_, second) = contest(&db, READ_COMMITTED, "[]", true).await?;
    assert!(matches!(second, Err(SubmitError::KeyReused { .. })), "{second:?}");
    assert_eq!(db.count("submissions").await?, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_decides_for_itself_when_the_first_rolls_back() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    for isolation in [READ_COMMITTED, STRICTER[0], STRICTER[1]] {
        let (first, second) = contest(&db, isolation, "[]", false).await?;
        let second = second.context(isolation)?;
        assert!(!second.replayed);
        assert_ne!(second.accepted.submission, first.accepted.submission);
    }
    assert_eq!(db.count("submissions").await?, 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_stricter_level_the_second_is_told_the_key_and_to_repeat() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    for isolation in STRICTER {
        let (_, second) = contest(&db, isolation, "{}", true).await?;
        let Err(refused @ SubmitError::KeyContended { .. }) = second else { bail!("{second:?}") };
        assert!(refused.is_transient() && refused.to_string().contains("order-1"), "{refused}");
    }
    assert_eq!(db.count("submissions").await?, 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_transaction_of_a_stricter_level_gets_the_answer() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let pool = postgres_pool(&db, 2).await?;
    let Acceptance::Accepted(first) =
        db.accept_one(&submission(&endpoint, Some("order-1"), b"{}")?).await?
    else {
        bail!("a fresh key was taken")
    };
    for isolation in STRICTER {
        let answer = second(&pool, &endpoint, isolation, "{}").await?.await??;
        assert_eq!(answer, Submitted { accepted: first.clone(), replayed: true });
    }
    Ok(())
}

/// The application's own time-out is what bounds the wait, and it stays as it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_with_the_applications_lock_timeout() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let pool = postgres_pool(&db, 2).await?;
    let limits = Limits::default();
    let mut holder = store::postgres::begin(&pool).await?;
    let held = draft(&endpoint, Some("order-1"), "{}");
    store::postgres::accept_in_tx(&mut holder, &held, &limits).await?;
    let mut tx = store::postgres::begin(&pool).await?;
    sqlx::query("set local lock_timeout = '70ms'").execute(&mut *tx).await?;
    let free = draft(&endpoint, Some("order-2"), "{}");
    store::postgres::accept_in_tx(&mut tx, &free, &limits).await?;
    let timeout: String =
        sqlx::query_scalar("select current_setting('lock_timeout')").fetch_one(&mut *tx).await?;
    assert_eq!(timeout, "70ms");
    let refused = store::postgres::accept_in_tx(&mut tx, &held, &limits).await;
    assert!(
        matches!(&refused, Err(SubmitError::KeyContended { key, .. }) if key == "order-1"),
        "{refused:?}"
    );
    drop(tx);
    // Over HTTP the same key is in progress, and no more than that.
    let store = Arc::clone(&db.store);
    let asked = store.accept(&[submission(&endpoint, Some("order-1"), b"{}")?]).await?;
    assert_eq!(asked, [Acceptance::KeyInProgress]);
    Ok(())
}
