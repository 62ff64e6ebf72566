//! A worker that is killed in the middle loses nothing.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::ensure;
use integration_tests::eventually;
use integration_tests::receiver::{Answer, Hold, Receiver};
use tokio::task::JoinSet;

use crate::history::{DELIVERED, assert_consistent, settled, wait_until_nothing_is_owed};
use crate::service::{LONG, Service, submit};

const SUBMISSIONS: usize = 5_000;
const ENDPOINTS: usize = 20;
const CONNECTIONS: usize = 32;

/// One api process, two worker processes, 5,000 submissions over 32 connections to 20 endpoints; one
/// worker is killed with SIGKILL in the middle. Every accepted submission is delivered, every history
/// is gap-free, and only what the killed worker held came twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_killed_in_the_middle_loses_nothing() -> anyhow::Result<()> {
    let service = Service::start().await?;
    // A quarter is answered at once. From then on answers are held until the victim is dead, so that it
    // dies with open requests.
    let (hold, taken) = (Hold::new(), AtomicUsize::new(0));
    let held_back = hold.clone();
    let receiver = Receiver::start(move |_, _| {
        let answer = Answer::status(204);
        let at_once = taken.fetch_add(1, Ordering::SeqCst) < SUBMISSIONS / 4;
        if at_once { answer } else { answer.hold(&held_back) }
    })?;
    for number in 0..ENDPOINTS {
        let url = receiver.url(&format!("/{number}"));
        service.endpoint(&format!("endpoint-{number}"), &url, |_| {}).await?;
    }
    let (_api, client) = service.api().await?;
    let survivor = service.worker("survivor").await?;
    let mut victim = service.worker("victim").await?;

    let mut producers = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let client = client.clone();
        producers.spawn(async move {
            let mut accepted = Vec::new();
            for number in (connection..SUBMISSIONS).step_by(CONNECTIONS) {
                let endpoint = format!("endpoint-{}", number % ENDPOINTS);
                let payload = format!("{{\"number\":{number}}}");
                let answer = submit(&client, &endpoint, &format!("key-{number}"), payload).await?;
                accepted.push(answer.submission_id);
            }
            anyhow::Ok(accepted)
        });
    }
    receiver.wait_for_requests(SUBMISSIONS / 4, LONG).await?;
    until_it_holds_something(&service, "victim").await?;
    victim.process.kill().await?;
    hold.release_all();
    let held = age_leases_of(&service, "victim").await?;

    let mut accepted = HashSet::new();
    while let Some(answers) = producers.join_next().await {
        accepted.extend(answers??);
    }
    ensure!(accepted.len() == SUBMISSIONS, "{} ids of {SUBMISSIONS}", accepted.len());
    wait_until_nothing_is_owed(&service.database, LONG).await?;

    let received: HashSet<String> = receiver.webhook_ids().into_iter().collect();
    assert_eq!(received, accepted, "what was accepted is what arrived");
    let delivered = settled(&service.database, DELIVERED).await?;
    assert_eq!(usize::try_from(delivered)?, SUBMISSIONS);
    let twice = receiver.requests().len() - SUBMISSIONS;
    ensure!(twice <= held, "{twice} came twice, and the killed worker held {held}");
    assert_consistent(&service.database).await?;
    drop(survivor);
    Ok(())
}

async fn until_it_holds_something(service: &Service, worker: &str) -> anyhow::Result<()> {
    let mut connection = service.database.connect().await?;
    eventually("the worker holds something", LONG, async || {
        let held: i64 = sqlx::query_scalar(
            "select count(*) from fencepost.deliveries where state = 2 and claimed_by = $1",
        )
        .bind(worker)
        .fetch_one(&mut connection)
        .await?;
        ensure!(held > 0, "it holds nothing");
        Ok(())
    })
    .await
}

/// Ends the leases of a worker that is dead, and answers how many deliveries it held.
async fn age_leases_of(service: &Service, worker: &str) -> anyhow::Result<usize> {
    let mut connection = service.database.connect().await?;
    let aged = sqlx::query(
        "update fencepost.deliveries set claim_expires_at = statement_timestamp() - interval '1 ms'
        where state = 2 and claimed_by = $1",
    )
    .bind(worker)
    .execute(&mut connection)
    .await?
    .rows_affected();
    ensure!(aged > 0, "it was killed while it held nothing: the test has shown nothing");
    Ok(usize::try_from(aged)?)
}
