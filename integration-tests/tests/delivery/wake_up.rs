//! A submission to an idle service reaches its receiver without waiting for a poll.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use api::Waker;
use integration_tests::eventually;
use integration_tests::process::Worker;
use integration_tests::receiver::{Receiver, always};
use integration_tests::worker_binary;

use crate::service::{LONG, Service, submit};

/// Longer than any test waits.
const POLL: &str = "1h";

/// Far below what is waited for beside it.
const SOON: Duration = Duration::from_secs(20);

async fn worker_that_hardly_polls(service: &Service) -> anyhow::Result<Worker> {
    let settings = service
        .settings
        .clone()
        .with("FENCEPOST_WORKER_POLL_INTERVAL", POLL)
        .with("FENCEPOST_WORKER_SWEEP_INTERVAL", POLL);
    Worker::start(worker_binary!(), "worker", &settings).await
}

/// The listening connections: those whose last statement was LISTEN, and that it ended.
async fn listeners(service: &Service) -> anyhow::Result<Vec<i32>> {
    let query = "select pid from pg_stat_activity where datname = current_database()
        and query ilike 'listen %' and state = 'idle'";
    let mut connection = service.database.connect().await?;
    Ok(sqlx::query_scalar(query).fetch_all(&mut connection).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_submission_to_an_idle_service_is_delivered_without_a_poll() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let receiver = Receiver::start(always(204))?;
    service.endpoint("a", &receiver.url("/"), |_| {}).await?;
    let (_api, client) = service.api().await?;
    let _worker = worker_that_hardly_polls(&service).await?;
    for number in 1..=5 {
        submit(&client, "a", &format!("key-{number}"), "{}").await?;
        receiver.wait_for_requests(number, SOON).await?;
    }
    Ok(())
}

/// Case C062.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_listening_connection_that_is_killed_comes_back_and_costs_no_delivery()
-> anyhow::Result<()> {
    let service = Service::start().await?;
    let receiver = Receiver::start(always(204))?;
    service.endpoint("a", &receiver.url("/"), |_| {}).await?;
    let (_api, client) = service.api().await?;
    let _worker = worker_that_hardly_polls(&service).await?;
    let listener = async || {
        let pids = listeners(&service).await?;
        ensure!(pids.len() == 1, "{pids:?} listen");
        Ok(pids)
    };
    for number in 1..=3 {
        let pids = eventually("one listens", LONG, listener).await?;
        let mut operator = service.database.connect().await?;
        sqlx::query("select pg_terminate_backend(pid) from unnest($1::int[]) as t(pid)")
            .bind(pids)
            .execute(&mut operator)
            .await?;
        // Told to nobody: found when the connection is back.
        submit(&client, "a", &format!("key-{number}"), "{}").await?;
        receiver.wait_for_requests(number, SOON).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_busy_api_tells_far_less_often_than_it_commits() -> anyhow::Result<()> {
    use sqlx::postgres::PgListener;
    let service = Service::start().await?;
    let endpoint = service.endpoint("a", "http://127.0.0.1:49151/", |_| {}).await?;
    let waker = Waker::new(Arc::clone(&service.store));
    let mut listener = PgListener::connect(service.database.url()).await?;
    listener.listen("fencepost_due").await?;
    let began = std::time::Instant::now();
    // As after commits that follow one another without a pause.
    while began.elapsed() < Duration::from_millis(300) {
        waker.wake([endpoint.key]);
        tokio::task::yield_now().await;
    }
    let most = began.elapsed().as_millis() / 2 + 3;
    // Those that come after this one are not counted.
    let mut operator = service.database.connect().await?;
    sqlx::query("select pg_notify('fencepost_due', 'end')").execute(&mut operator).await?;
    let mut told = 0;
    while listener.recv().await?.payload() != "end" {
        told += 1;
    }
    ensure!(told >= 1 && told <= most, "{told} in at most {most}");
    Ok(())
}
