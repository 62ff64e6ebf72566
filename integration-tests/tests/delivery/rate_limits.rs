//! G6 across processes: four of them spend from one budget, and exactly that is admitted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use domain::rate_limit::RateLimit;
use integration_tests::http::{ApiClient, Reply};
use integration_tests::process::Api;
use integration_tests::race::race;

use crate::service::Service;

const PROCESSES: usize = 4;

/// A window that does not end while a test runs, but for one run in a few ten thousands.
const DAY: Duration = Duration::from_hours(24);

async fn processes(service: &Service) -> anyhow::Result<(Vec<Api>, Vec<ApiClient>)> {
    let (mut apis, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..PROCESSES {
        let (api, client) = service.api().await?;
        // Its connection is open before the race.
        client.get("/livez").await?;
        apis.push(api);
        clients.push(client);
    }
    Ok((apis, clients))
}

/// As many submissions to each process, all at one instant.
async fn submit_at_once(
    clients: &[ApiClient],
    each: usize,
    path: impl Fn(usize) -> String,
) -> anyhow::Result<Vec<Reply>> {
    let contestants: Vec<_> = clients
        .iter()
        .enumerate()
        .flat_map(|(process, client)| vec![(client.clone(), path(process)); each])
        .collect();
    race(contestants, |_, (client, path)| async move { client.post(&path, &[], "x").await }).await
}

fn count(replies: &[Reply], status: u16) -> usize {
    replies.iter().filter(|reply| reply.status.as_u16() == status).count()
}

async fn used(service: &Service, limiter: i16) -> anyhow::Result<Vec<i32>> {
    let text = "select used from fencepost.rate_limit_counters where limiter = $1";
    let mut connection = service.database.connect().await?;
    Ok(sqlx::query_scalar(text).bind(limiter).fetch_all(&mut connection).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn four_processes_admit_exactly_the_limit_of_an_endpoint() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let limit = RateLimit::new(100, DAY)?;
    service.endpoint("a", "http://127.0.0.1:49151/", |draft| draft.ingest_rate = limit).await?;
    let (_apis, clients) = processes(&service).await?;
    let path = |_| "/v1/endpoints/a/submissions".to_owned();

    let within = submit_at_once(&clients, 20, path).await?;
    ensure!(count(&within, 202) == 80, "{within:?}");
    assert_eq!(used(&service, 2).await?, [80], "no increment is lost, nothing is reserved ahead");

    let beyond = submit_at_once(&clients, 30, path).await?;
    assert_eq!((count(&beyond, 202), count(&beyond, 429)), (20, 100));
    let spent = used(&service, 2).await?;
    // Those who came when their process knew already did not ask.
    ensure!(spent.len() == 1 && (100..=200).contains(&spent[0]), "{spent:?}");

    for client in &clients {
        let refused = client.post(&path(0), &[], "x").await?;
        let problem: serde_json::Value = refused.json()?;
        assert_eq!(
            (&problem["code"], &problem["scope"]),
            (&"rate_limited".into(), &"endpoint".into())
        );
        ensure!(refused.header("retry-after").is_some());
    }
    let mut connection = service.database.connect().await?;
    let stored: i64 = sqlx::query_scalar("select count(*) from fencepost.submissions")
        .fetch_one(&mut connection)
        .await?;
    assert_eq!(stored, 100);
    Ok(())
}

/// The processes share a sealing key and so the digest of an address.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_address_has_one_budget_in_all_processes() -> anyhow::Result<()> {
    let mut service = Service::start().await?;
    service.settings = service.settings.clone().with("FENCEPOST_SOURCE_RATE", "50/24h");
    for process in 0..PROCESSES {
        service.endpoint(&format!("e{process}"), "http://127.0.0.1:49151/", |_| {}).await?;
    }
    let (_apis, clients) = processes(&service).await?;
    let path = |process: usize| format!("/v1/endpoints/e{process}/submissions");
    let replies = submit_at_once(&clients, 20, path).await?;
    assert_eq!((count(&replies, 202), count(&replies, 429)), (50, 30));
    assert_eq!(used(&service, 1).await?.len(), 1, "one address, one counter");
    Ok(())
}

/// One of four is killed with requests open. What it had admitted is spent, and no more than the limit
/// is ever admitted; a process that never saw the client knows that it is spent.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_process_killed_in_the_middle_admits_no_more_and_a_new_one_finds_the_budget_spent()
-> anyhow::Result<()> {
    const LIMIT: u32 = 100;
    let service = Service::start().await?;
    let limit = RateLimit::new(LIMIT, DAY)?;
    service.endpoint("a", "http://127.0.0.1:49151/", |draft| draft.ingest_rate = limit).await?;
    let (mut apis, clients) = processes(&service).await?;
    let path = "/v1/endpoints/a/submissions";
    let admitted = Arc::new(AtomicUsize::new(0));
    let (first, of_all) = (tokio::sync::Notify::new(), Arc::clone(&admitted));
    let first = Arc::new(first);
    let told = Arc::clone(&first);
    let contestants: Vec<_> = clients.iter().cloned().cycle().take(32).collect();
    let racing = tokio::spawn(race(contestants, move |_, client| {
        let (admitted, told) = (Arc::clone(&of_all), Arc::clone(&told));
        async move {
            for _ in 0..20 {
                // A process that is gone answers nothing: its client goes away too.
                let Ok(reply) = client.post(path, &[], "x").await else { break };
                if reply.status.as_u16() == 202 {
                    admitted.fetch_add(1, Ordering::SeqCst);
                    told.notify_one();
                }
            }
            Ok(())
        }
    }));
    first.notified().await;
    apis[0].process.kill().await?;
    racing.await??;

    // 24 others asked 480 times: nothing is left.
    let stored: i64 = sqlx::query_scalar("select count(*) from fencepost.submissions")
        .fetch_one(&mut service.database.connect().await?)
        .await?;
    let told = admitted.load(Ordering::SeqCst);
    ensure!(told <= usize::try_from(stored)?, "{told} were told, {stored} are stored");
    ensure!(stored <= i64::from(LIMIT), "{stored} were admitted");
    let (_api, newcomer) = service.api().await?;
    let refused = newcomer.post(path, &[], "x").await?;
    assert_eq!(refused.status.as_u16(), 429);
    Ok(())
}
