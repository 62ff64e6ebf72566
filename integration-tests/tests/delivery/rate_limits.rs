//! G6 across processes: four of them spend from one budget, and exactly that is admitted.

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
