//! A worker that is told does not wait for its poll.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::StateName;
use domain::id::PublicId;
use store::endpoint::Pause;

use super::bench::{Bench, eventually, start};
use super::faulty_store::FaultyStore;
use super::site::{Reply, Site};

const HOUR: Duration = Duration::from_hours(1);

#[tokio::test]
async fn an_idle_worker_delivers_what_it_is_told_of_without_a_poll() {
    let site = Site::new(|_, _| Reply::Status(200)).await;
    let bench = Bench::new().await;
    let endpoint = bench.endpoint("a", &site.url("/")).await;
    let mut worker = start(Arc::clone(&bench.store), |settings| {
        settings.poll_interval = HOUR;
        settings.sweep_interval = HOUR;
    });
    assert!(worker.running.started().await);
    for number in 0..3_u8 {
        let delivery = bench.submit(endpoint, vec![number]).await;
        bench.store.notify_due(&[]).await.unwrap();
        bench.until(&[delivery], StateName::Delivered).await;
    }
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn a_wake_up_is_not_lost_to_a_database_that_is_away_at_that_moment() {
    let site = Site::new(|_, _| Reply::Status(200)).await;
    let bench = Bench::new().await;
    let endpoint = bench.endpoint("a", &site.url("/")).await;
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let store = FaultyStore::new(Arc::clone(&bench.store), move |called, _| {
        // The second look is the woken one.
        if called == "find_due_endpoints" && counted.fetch_add(1, Ordering::Relaxed) == 1 {
            return Err(super::faulty_store::unavailable());
        }
        Ok(())
    });
    let worker = start(store, |settings| {
        settings.poll_interval = HOUR;
        settings.sweep_interval = HOUR;
    });
    eventually("the first look", async || looks.load(Ordering::Relaxed) == 1).await;
    let delivery = bench.submit(endpoint, vec![1]).await;
    bench.store.notify_due(&[]).await.unwrap();
    bench.until(&[delivery], StateName::Delivered).await;
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn an_endpoint_that_a_wake_up_names_is_claimed_from_without_a_look_and_a_paused_one_once() {
    let site = Site::new(|_, _| Reply::Status(200)).await;
    let bench = Bench::new().await;
    let open = bench.endpoint("open", &site.url("/")).await;
    let paused = bench.endpoint("paused", &site.url("/")).await;
    let id = PublicId::parse("paused").unwrap();
    bench.store.pause_endpoint(DEFAULT_APPLICATION_KEY, &id, Pause::ForGood).await.unwrap();
    let (looks, claims) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (looked, claimed) = (Arc::clone(&looks), Arc::clone(&claims));
    let store = FaultyStore::new(Arc::clone(&bench.store), move |called, _| {
        match called {
            "find_due_endpoints" => looked.fetch_add(1, Ordering::Relaxed),
            "claim_due" => claimed.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        Ok(())
    });
    let worker = start(store, |settings| {
        settings.poll_interval = HOUR;
        settings.sweep_interval = HOUR;
    });
    eventually("the first look", async || looks.load(Ordering::Relaxed) == 1).await;
    let waits = bench.submit(paused, vec![0]).await;
    bench.store.notify_due(&[paused]).await.unwrap();
    eventually("a claim", async || claims.load(Ordering::Relaxed) == 1).await;
    for _ in 0..20 {
        bench.store.notify_due(&[paused]).await.unwrap();
        bench.store.check().await.unwrap();
    }
    let delivery = bench.submit(open, vec![1]).await;
    bench.store.notify_due(&[open]).await.unwrap();
    bench.until(&[delivery], StateName::Delivered).await;
    assert_eq!((looks.load(Ordering::Relaxed), claims.load(Ordering::Relaxed)), (1, 2));
    bench.until(&[waits], StateName::Pending).await;
    worker.stop().await.unwrap();
}
