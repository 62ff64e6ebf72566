//! The end of a worker: what is sent is awaited, what is not sent goes back.

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::StateName;
use tokio::time::Instant;

use super::bench::{Bench, eventually, start};
use super::faulty_store::{FaultyStore, unavailable};
use super::site::{Reply, Site};

#[tokio::test]
async fn a_stop_awaits_what_is_sent_and_gives_back_what_is_only_claimed() {
    let site = Site::new(|_, _| Reply::Held).await;
    let bench = Bench::new().await;
    let endpoint = bench.endpoint("a", &site.url("/")).await;
    let mut deliveries = Vec::new();
    for _ in 0..4 {
        deliveries.push(bench.submit(endpoint, vec![b'x'; 40_000]).await);
    }
    // All four are claimed at once, and there is memory for one.
    let worker = start(Arc::clone(&bench.store), |settings| {
        settings.payload_memory_bytes = 64 * 1024;
    });
    eventually("the first request", async || !site.seen().is_empty()).await;
    bench.until(&deliveries, StateName::Processing).await;
    worker.stop.cancel();
    // The rest is back while the first is still open.
    bench.until(&deliveries[1..], StateName::Pending).await;
    site.release();
    worker.stop().await.unwrap();

    let states = async |id| {
        let delivery = bench.delivery(id).await.delivery;
        (delivery.state, delivery.attempts, delivery.lapses)
    };
    assert_eq!(states(deliveries[0]).await, (StateName::Delivered, 1, 0));
    for id in &deliveries[1..] {
        assert_eq!(states(*id).await, (StateName::Pending, 0, 0));
    }
    assert_eq!(site.seen().len(), 1);
}

#[tokio::test]
async fn a_stop_ends_at_its_deadline_and_leaves_the_rest_to_its_lease() {
    let site = Site::new(|_, _| Reply::Held).await;
    let bench = Bench::new().await;
    let endpoint = bench.endpoint("a", &site.url("/")).await;
    let delivery = bench.submit(endpoint, b"x".to_vec()).await;
    let worker = start(Arc::clone(&bench.store), |settings| {
        settings.stop_deadline = Duration::from_millis(200);
    });
    eventually("the request", async || !site.seen().is_empty()).await;
    let began = Instant::now();
    worker.stop().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(bench.delivery(delivery).await.delivery.state, StateName::Processing);
}

#[tokio::test]
async fn a_stop_ends_at_its_deadline_when_the_database_is_away() {
    let site = Site::new(|_, _| Reply::Status(200)).await;
    let bench = Bench::new().await;
    let endpoint = bench.endpoint("a", &site.url("/")).await;
    bench.submit(endpoint, b"x".to_vec()).await;
    let store = FaultyStore::new(Arc::clone(&bench.store), |called, _| match called {
        "record_attempts" => Err(unavailable()),
        _ => Ok(()),
    });
    let worker = start(store, |settings| settings.stop_deadline = Duration::from_millis(200));
    eventually("the request", async || !site.seen().is_empty()).await;
    let began = Instant::now();
    worker.stop().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_idle_worker_stops_at_once() {
    let bench = Bench::new().await;
    let worker = start(Arc::clone(&bench.store), |settings| {
        settings.poll_interval = Duration::from_mins(1);
    });
    let began = Instant::now();
    worker.stop().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
}
