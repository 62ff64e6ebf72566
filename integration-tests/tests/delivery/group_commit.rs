//! Submissions that share commits, on PostgreSQL: with keys that others hold, connections that are
//! cut in the middle, and rows that the database refuses.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use api::{CommitLimits, Committer, Waker};
use bytes::Bytes;
use domain::submission::{ContentType, IdempotencyKey};
use sqlx::{Connection as _, PgConnection};
use store::StoreOptions;
use store::endpoint::Endpoint;
use store::sealing::{Sealer, SealingKey};
use store::submission::{Acceptance, NewSubmission};
use tokio::task::JoinSet;

use crate::service::{LONG, Service};

fn committer(service: &Service, limits: CommitLimits) -> Committer {
    let waker = Waker::new(Arc::clone(&service.store));
    Committer::new(Arc::clone(&service.store), waker, limits)
}

fn submission(endpoint: &Endpoint, key: Option<&str>) -> anyhow::Result<NewSubmission> {
    let key = key.map(|key| IdempotencyKey::parse(key.as_bytes())).transpose()?;
    let payload = Bytes::from_static(b"{}");
    Ok(NewSubmission::new(endpoint.key, key, None, ContentType::default(), payload))
}

/// Commits of the database so far, with those that its backends have not yet reported.
async fn commits(connection: &mut PgConnection) -> anyhow::Result<i64> {
    sqlx::query("select pg_stat_force_next_flush()").execute(&mut *connection).await?;
    let count = "select xact_commit from pg_stat_database where datname = current_database()";
    Ok(sqlx::query_scalar(count).fetch_one(connection).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_concurrent_submissions_share_their_commits() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let endpoint = service.endpoint("a", "http://127.0.0.1:49151/", |_| {}).await?;
    let committer = committer(&service, CommitLimits::default());
    let mut connection = service.database.connect().await?;
    let before = commits(&mut connection).await?;
    let mut callers = JoinSet::new();
    for number in 0..1_000 {
        let submission = submission(&endpoint, Some(&format!("key-{number}")))?;
        let committer = committer.clone();
        callers.spawn(async move { committer.accept(submission).await });
    }
    while let Some(answer) = callers.join_next().await {
        ensure!(matches!(answer?, Ok(Acceptance::Accepted(_))));
    }
    let stored = service.database.connect().await?;
    assert_eq!(count(stored, "submissions").await?, 1_000);
    let commits = commits(&mut connection).await? - before;
    ensure!(committer.flushes() <= 200, "{} flushes", committer.flushes());
    ensure!(commits <= 250, "{commits} commits");
    Ok(())
}

/// An open transaction of somebody else that holds a key.
async fn hold(connection: &mut PgConnection, of: &NewSubmission) -> anyhow::Result<()> {
    let key = of.idempotency_key.as_ref().context("a key")?;
    sqlx::query("begin").execute(&mut *connection).await?;
    sqlx::query(
        "insert into fencepost.idempotency_keys
            (scope, key, fingerprint, submission, deliveries, received_at, expires_at)
        values ($1, $2, $3, $4, array[$5], now(), now() + interval '1 day')",
    )
    .bind(of.endpoint.as_uuid())
    .bind(key.as_str())
    .bind(of.fingerprint.as_bytes().as_slice())
    .bind(of.id.as_uuid())
    .bind(of.delivery.as_uuid())
    .execute(connection)
    .await?;
    Ok(())
}

async fn count(mut connection: PgConnection, table: &str) -> anyhow::Result<i64> {
    let text = sqlx::AssertSqlSafe(format!("select count(*) from fencepost.{table}"));
    let count = sqlx::query_scalar(text).fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_key_that_another_holds_is_answered_as_in_progress_and_its_neighbours_are_stored()
-> anyhow::Result<()> {
    let service = Service::start().await?;
    let endpoint = service.endpoint("a", "http://127.0.0.1:49151/", |_| {}).await?;
    // One flush at a time, so that what waits shares the next.
    let limits = CommitLimits { flushes_max: 1, ..CommitLimits::default() };
    let committer = committer(&service, limits);
    let mut holder = service.database.connect().await?;
    hold(&mut holder, &submission(&endpoint, Some("held"))?).await?;

    let keys = [Some("first"), Some("held"), Some("free"), None];
    let all = keys.map(|key| submission(&endpoint, key));
    let [first, held, free, keyless] = all;
    let (first, held, free, keyless) = tokio::join!(
        committer.accept(first?),
        committer.accept(held?),
        committer.accept(free?),
        committer.accept(keyless?),
    );
    ensure!(matches!(first, Ok(Acceptance::Accepted(_))), "{first:?}");
    ensure!(matches!(held, Ok(Acceptance::KeyInProgress)), "{held:?}");
    ensure!(matches!(free, Ok(Acceptance::Accepted(_))), "{free:?}");
    ensure!(matches!(keyless, Ok(Acceptance::Accepted(_))), "{keyless:?}");
    assert_eq!(committer.flushes(), 2);

    // Over HTTP the same is a 409 that says when to ask again.
    let (_api, client) = service.api().await?;
    let header = [(reqwest::header::HeaderName::from_static("idempotency-key"), "held")];
    let reply = client.post("/v1/endpoints/a/submissions", &header, "{}").await?;
    assert_eq!(reply.status, reqwest::StatusCode::CONFLICT);
    assert!(reply.headers.contains_key("retry-after"));
    ensure!(String::from_utf8_lossy(&reply.body).contains("idempotency_key_in_progress"));
    Ok(())
}

/// There is one flush until one is slow, and a slow one holds up nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flush_that_waits_for_a_key_holds_up_none_that_comes_later() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let endpoint = service.endpoint("a", "http://127.0.0.1:49151/", |_| {}).await?;
    // Waits longer for the key than what comes later may take.
    let mut options = StoreOptions::new(Sealer::new(SealingKey::generate()?, Vec::new()));
    options.key_wait = Duration::from_secs(9);
    let store = store::open(service.database.url(), options).await?;
    let waker = Waker::new(Arc::clone(&store));
    let committer = Committer::new(store, waker, CommitLimits::default());
    let mut holder = service.database.connect().await?;
    hold(&mut holder, &submission(&endpoint, Some("held"))?).await?;

    let held = submission(&endpoint, Some("held"))?;
    let waiting = committer.accept(held);
    tokio::pin!(waiting);
    ensure!(futures_util::poll!(&mut waiting).is_pending());
    for key in [Some("free"), None, Some("another")] {
        let free = committer.accept(submission(&endpoint, key)?);
        tokio::select! {
            biased;
            answer = &mut waiting => bail!("the key is held, and its flush ended first: {answer:?}"),
            answer = free => ensure!(matches!(answer, Ok(Acceptance::Accepted(_))), "{answer:?}"),
        }
    }
    sqlx::query("rollback").execute(&mut holder).await?;
    let answer = waiting.await;
    ensure!(matches!(answer, Ok(Acceptance::Accepted(_))), "{answer:?}");
    Ok(())
}

/// The connection of a flush is cut while it waits for a held key: the flush is tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flush_whose_connection_is_cut_is_tried_again_with_the_same_ids() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let endpoint = service.endpoint("a", "http://127.0.0.1:49151/", |_| {}).await?;
    let committer = committer(&service, CommitLimits::default());
    let mut holder = service.database.connect().await?;
    hold(&mut holder, &submission(&endpoint, Some("held"))?).await?;
    let new = submission(&endpoint, Some("held"))?;
    let flushing = tokio::spawn({
        let (committer, new) = (committer.clone(), new.clone());
        async move { committer.accept(new).await }
    });
    let mut operator = service.database.connect().await?;
    let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    loop {
        if sqlx::query_scalar::<_, i64>(cut).fetch_one(&mut operator).await? > 0 {
            break;
        }
        ensure!(!flushing.is_finished(), "it was never seen waiting");
    }
    sqlx::query("rollback").execute(&mut holder).await?;
    let answer = tokio::time::timeout(LONG, flushing).await??;
    let Ok(Acceptance::Accepted(accepted)) = answer else { bail!("{answer:?}") };
    assert_eq!(accepted.submission, new.id);
    assert_eq!(count(operator, "submissions").await?, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_row_that_the_database_refuses_costs_its_neighbours_nothing() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let endpoint = service.endpoint("a", "http://127.0.0.1:49151/", |_| {}).await?;
    let limits = CommitLimits { flushes_max: 1, ..CommitLimits::default() };
    let committer = committer(&service, limits);
    // The delivery has the id of one that is there: a unique violation, as no caller can make one.
    let there = submission(&endpoint, None)?;
    let mut bad = submission(&endpoint, None)?;
    bad.delivery = there.delivery;
    let good = submission(&endpoint, Some("good"))?;
    let (there, bad, good) =
        tokio::join!(committer.accept(there), committer.accept(bad), committer.accept(good));
    ensure!(matches!(there, Ok(Acceptance::Accepted(_))), "{there:?}");
    ensure!(bad.is_err(), "{bad:?}");
    ensure!(matches!(good, Ok(Acceptance::Accepted(_))), "{good:?}");
    let stored = service.database.connect().await?;
    assert_eq!(count(stored, "submissions").await?, 2);
    Ok(())
}
