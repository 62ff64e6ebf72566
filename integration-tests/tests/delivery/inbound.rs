//! G9 across processes: copies of events reach several of them, one of which is killed.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::PublicId;
use domain::source::{EventIdLocation, HeaderName, Scheme, SchemeKind, SourceSecret};
use integration_tests::http::ApiClient;
use integration_tests::race::race;
use integration_tests::receiver::{Answer, Receiver};
use reqwest::StatusCode;
use reqwest::header::HeaderName as WireName;
use store::source::{NewSource, SourceCreation};

use crate::history::{assert_consistent, wait_until_nothing_is_owed};
use crate::service::{LONG, Service};

const EVENTS: usize = 40;
const PROCESSES: usize = 3;
const KEY: &str = "what the sender shows";

async fn source(service: &Service, url: &str) -> anyhow::Result<()> {
    let endpoint = service.endpoint("orders", url, |draft| {
        // Nothing here is about budgets.
        draft.ingest_rate = domain::rate_limit::RateLimit::SOURCE_DEFAULT;
    });
    let endpoint = endpoint.await?;
    let new = NewSource {
        key: store::new_id::source_key(),
        application: DEFAULT_APPLICATION_KEY,
        id: PublicId::parse("shop")?,
        name: None,
        endpoint: (endpoint.key, endpoint.id),
        scheme: Scheme::from_json(r#"{"type":"api_key","header":"x-key"}"#)?,
        event_id: Some(EventIdLocation::Header(HeaderName::parse("x-event")?)),
        headers: Vec::new(),
        secret: SourceSecret::parse(SchemeKind::ApiKey, KEY)?,
    };
    let created = service.store.create_source(&new).await?;
    ensure!(matches!(created, SourceCreation::Created(_)), "{created:?}");
    Ok(())
}

/// Whether the sender was told 2xx. One that is told nothing comes again.
async fn send(client: &ApiClient, event: usize) -> bool {
    let event_id = format!("evt-{event}");
    let headers = [
        (WireName::from_static("x-key"), KEY),
        (WireName::from_static("x-event"), event_id.as_str()),
    ];
    let reply = client.post("/in/shop", &headers, format!("{{\"event\":{event}}}")).await;
    reply.is_ok_and(|reply| reply.status == StatusCode::OK)
}

/// Case C120: copies at the same instant, and a process that dies among them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn copies_that_reach_several_processes_are_one_submission_though_one_is_killed()
-> anyhow::Result<()> {
    let service = Service::start().await?;
    let receiver = Receiver::start(|_, _| Answer::status(204))?;
    source(&service, &receiver.url("/")).await?;
    let (mut apis, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..PROCESSES {
        let (api, client) = service.api().await?;
        client.get("/livez").await?;
        apis.push(api);
        clients.push(client);
    }
    let mut victim = apis.pop().context("a process")?;

    let copies = (0..EVENTS).flat_map(|event| clients.iter().map(move |it| (event, it.clone())));
    let copies: Vec<(usize, ApiClient)> = copies.collect();
    let sending =
        race(copies, |_, (event, client)| async move { Ok((event, send(&client, event).await)) });
    // It dies while they are sent to it.
    let killing = async { victim.process.kill().await };
    let (told, killed) = tokio::join!(sending, killing);
    killed?;
    let told: BTreeSet<usize> =
        told?.into_iter().filter(|(_, told)| *told).map(|(event, _)| event).collect();
    ensure!(!told.is_empty(), "two processes live");
    // The sender comes again with all of them, whatever it was told: none is stored twice.
    for event in 0..EVENTS {
        ensure!(send(&clients[0], event).await, "event {event}");
    }

    let mut connection = service.database.connect().await?;
    let count = "select (select count(*) from fencepost.receipts),
        (select count(*) from fencepost.submissions)";
    let (receipts, submissions): (i64, i64) =
        sqlx::query_as(count).fetch_one(&mut connection).await?;
    let events = i64::try_from(EVENTS)?;
    assert_eq!((receipts, submissions), (events, events));

    let worker = service.worker("worker").await?;
    wait_until_nothing_is_owed(&service.database, LONG).await?;
    let bodies: BTreeSet<Vec<u8>> =
        receiver.requests().iter().map(|request| request.body.to_vec()).collect();
    assert_eq!(bodies.len(), EVENTS, "each event arrived");
    assert_consistent(&service.database).await?;
    drop((worker, apis));
    Ok(())
}
