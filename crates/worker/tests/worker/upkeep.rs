//! Upkeep by the worker that leads.

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::StateName;
use domain::endpoint::DisabledCause;
use domain::id::{DeliveryId, EndpointKey, PublicId};
use store::maintenance::Candidacy;
use store::submission::SubmissionFilter;
use store::{CreatedWindow, Page};
use uuid::Uuid;

use super::bench::{Bench, eventually, start};
use super::faulty_store::{FaultyStore, refused};
use super::site::{Reply, Site};

async fn lead(bench: &Bench, token: Uuid) -> bool {
    let lease = Duration::from_secs(30);
    bench.store.lead(&Candidacy { holder: "another", token, lease }).await.unwrap()
}

/// A delivery that only upkeep can end: its endpoint is deleted.
async fn left_behind(bench: &Bench, url: &str) -> DeliveryId {
    let endpoint = bench.endpoint("gone", url).await;
    let delivery = bench.submit(endpoint, b"x".to_vec()).await;
    let id = PublicId::parse("gone").unwrap();
    assert!(bench.store.delete_endpoint(bench.application, &id).await.unwrap());
    delivery
}

#[tokio::test]
async fn a_worker_does_the_upkeep_at_its_start_and_leaves_the_lead_at_its_stop() {
    let bench = Bench::new().await;
    let delivery = left_behind(&bench, "http://127.0.0.1:9000/").await;
    let worker = start(bench.store.clone(), |_| {});
    bench.until(&[delivery], StateName::Cancelled).await;
    assert!(!lead(&bench, store::new_id::uuid_now()).await, "the worker leads");
    worker.stop().await.unwrap();
    assert!(lead(&bench, store::new_id::uuid_now()).await, "nobody waits for its lease");
}

#[tokio::test]
async fn a_worker_beside_a_leader_delivers_and_leaves_the_upkeep_to_it() {
    let site = Site::new(|_, _| Reply::Status(200)).await;
    let bench = Bench::new().await;
    let leader = store::new_id::uuid_now();
    assert!(lead(&bench, leader).await);
    let left = left_behind(&bench, &site.url("/")).await;
    let endpoint = bench.endpoint("a", &site.url("/")).await;
    let worker = start(bench.store.clone(), |_| {});
    for _ in 0..5 {
        let delivery = bench.submit(endpoint, b"x".to_vec()).await;
        bench.until(&[delivery], StateName::Delivered).await;
    }
    worker.stop().await.unwrap();
    assert_eq!(bench.delivery(left).await.delivery.state, StateName::Pending);
    assert!(lead(&bench, leader).await, "a worker that does not lead ends nobody's term");
}

/// Something happens that an operator is told of.
async fn happens(bench: &Bench, id: &str) {
    let endpoint = bench.find_endpoint(id).await;
    let (key, version) = (endpoint.key, endpoint.version);
    assert!(bench.store.disable_endpoint(key, version, DisabledCause::Gone).await.unwrap());
}

async fn until_no_event_waits(bench: &Bench) {
    eventually("no event waits", async || bench.store.read_events(10).await.unwrap().is_empty())
        .await;
}

async fn submissions_of(bench: &Bench, endpoint: EndpointKey) -> usize {
    let filter = SubmissionFilter {
        application: bench.application,
        endpoint: Some(endpoint),
        created: CreatedWindow::default(),
        page: Page { limit: 250, before: None },
    };
    bench.store.list_submissions(filter).await.unwrap().len()
}

#[tokio::test]
async fn what_happened_reaches_the_operators_endpoint() {
    let site =
        Site::new(|seen, _| Reply::Status(if seen.path == "/ops" { 200 } else { 404 })).await;
    let bench = Bench::new().await;
    let operator = bench.endpoint("ops", &site.url("/ops")).await;
    bench.endpoint("orders", &site.url("/orders")).await;
    bench.store.set_operational_endpoint(operator).await.unwrap();
    happens(&bench, "orders").await;
    let waiting = bench.store.read_events(10).await.unwrap();
    assert_eq!(waiting.len(), 1);
    let worker = start(bench.store.clone(), |_| {});
    eventually("it is told", async || !site.seen().is_empty()).await;
    until_no_event_waits(&bench).await;
    worker.stop().await.unwrap();
    let seen = site.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!((&*seen[0].path, &seen[0].body), ("/ops", &waiting[0].event.body().into_bytes()));
}

/// The worker that submitted the event is gone before it took the event away.
#[tokio::test]
async fn an_event_that_was_submitted_and_not_taken_away_is_not_submitted_again() {
    let site = Site::new(|_, _| Reply::Status(200)).await;
    let bench = Bench::new().await;
    let operator = bench.endpoint("ops", &site.url("/ops")).await;
    bench.endpoint("orders", &site.url("/orders")).await;
    bench.store.set_operational_endpoint(operator).await.unwrap();
    happens(&bench, "orders").await;
    let store = FaultyStore::new(Arc::clone(&bench.store), |called, _| {
        if called == "forget_events" { Err(refused()) } else { Ok(()) }
    });
    let worker = start(store, |_| {});
    eventually("it is told", async || !site.seen().is_empty()).await;
    worker.stop().await.unwrap();
    assert_eq!(bench.store.read_events(10).await.unwrap().len(), 1, "it still waits");

    let next = start(bench.store.clone(), |_| {});
    until_no_event_waits(&bench).await;
    next.stop().await.unwrap();
    assert_eq!(submissions_of(&bench, operator).await, 1);
}

#[tokio::test]
async fn events_about_the_operators_endpoint_or_for_a_deleted_one_are_dropped() {
    let site = Site::new(|_, _| Reply::Status(200)).await;
    let bench = Bench::new().await;
    let former = bench.endpoint("former", &site.url("/former")).await;
    let operator = bench.endpoint("ops", &site.url("/ops")).await;
    bench.store.set_operational_endpoint(former).await.unwrap();
    happens(&bench, "ops").await;
    assert_eq!(bench.store.read_events(10).await.unwrap().len(), 1);
    // It was told to another then, and would be told to itself now.
    bench.store.set_operational_endpoint(operator).await.unwrap();
    let worker = start(bench.store.clone(), |_| {});
    until_no_event_waits(&bench).await;
    worker.stop().await.unwrap();

    bench.endpoint("orders", &site.url("/orders")).await;
    happens(&bench, "orders").await;
    let id = PublicId::parse("ops").unwrap();
    assert!(bench.store.delete_endpoint(bench.application, &id).await.unwrap());
    assert_eq!(bench.store.read_events(10).await.unwrap().len(), 1);
    let worker = start(bench.store.clone(), |_| {});
    until_no_event_waits(&bench).await;
    worker.stop().await.unwrap();
    for endpoint in [former, operator] {
        assert_eq!(submissions_of(&bench, endpoint).await, 0);
    }
}
