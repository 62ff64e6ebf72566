//! The database comes and goes: nothing is lost, nothing is sent twice, and nothing spins.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::delivery::StateName;

use super::bench::{Bench, eventually, start};
use super::faulty_store::{FaultyStore, refused, unavailable};
use super::site::{Reply, Site};

/// Case C061.
#[tokio::test]
async fn a_database_that_goes_away_anywhere_is_waited_for() {
    for away in [
        "check",
        "find_due_endpoints",
        "claim_due",
        "read_targets",
        "read_payloads",
        "record_attempts",
    ] {
        let site = Site::new(|_, _| Reply::Status(200)).await;
        let bench = Bench::new().await;
        let endpoint = bench.endpoint("a", &site.url("/")).await;
        let delivery = bench.submit(endpoint, b"x".to_vec()).await;
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let store = FaultyStore::new(Arc::clone(&bench.store), move |called, _| {
            if called == away && counted.fetch_add(1, Ordering::Relaxed) < 2 {
                return Err(unavailable());
            }
            Ok(())
        });
        let worker = start(store, |_| {});
        bench.until(&[delivery], StateName::Delivered).await;
        worker.stop().await.unwrap();
        let detail = bench.delivery(delivery).await;
        assert_eq!((detail.delivery.attempts, detail.delivery.lapses), (1, 0), "{away}");
        assert_eq!(site.seen().len(), 1, "{away}");
        assert!(calls.load(Ordering::Relaxed) >= 3, "{away}");
    }
}

#[tokio::test]
async fn a_worker_without_a_database_asks_ever_more_rarely() {
    let bench = Bench::new().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let store = FaultyStore::new(Arc::clone(&bench.store), move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        Err(unavailable())
    });
    let mut worker = start(store, |settings| settings.poll_interval = Duration::from_millis(1));
    assert!(worker.running.started().await, "it waits for the database");
    eventually("four calls", async || calls.load(Ordering::Relaxed) >= 4).await;
    worker.stop().await.unwrap();
    // 100, 200 and 400 ms lie between the first four.
    assert_eq!(calls.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_result_that_the_database_refuses_does_not_cost_the_others_theirs() {
    let site = Site::new(|_, _| Reply::Status(200)).await;
    let bench = Bench::new().await;
    let endpoint = bench.endpoint("a", &site.url("/")).await;
    let mut deliveries = Vec::new();
    for number in 0..4_u8 {
        deliveries.push(bench.submit(endpoint, vec![number]).await);
    }
    let bad = deliveries.remove(1);
    let refusals = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refusals);
    let store = FaultyStore::new(Arc::clone(&bench.store), move |_, deliveries| {
        if deliveries.contains(&bad) {
            counted.fetch_add(1, Ordering::Relaxed);
            return Err(refused());
        }
        Ok(())
    });
    let worker = start(store, |_| {});
    bench.until(&deliveries, StateName::Delivered).await;
    eventually("the refusal", async || refusals.load(Ordering::Relaxed) > 0).await;
    worker.stop().await.unwrap();
    // It is left to its lease.
    assert_eq!(bench.delivery(bad).await.delivery.state, StateName::Processing);
    assert_eq!(site.seen().len(), 4);
}

#[tokio::test]
async fn a_panic_costs_one_batch_and_not_the_worker() {
    let site = Site::new(|_, _| Reply::Status(200)).await;
    let bench = Bench::new().await;
    let endpoint = bench.endpoint("a", &site.url("/")).await;
    let poison = bench.submit(endpoint, b"poison".to_vec()).await;
    let store = FaultyStore::new(Arc::clone(&bench.store), move |_, deliveries| {
        assert!(!deliveries.contains(&poison), "a fault of ours");
        Ok(())
    });
    let worker = start(store, |settings| settings.concurrency = 1);
    eventually("the request", async || !site.seen().is_empty()).await;
    let next = bench.submit(endpoint, b"next".to_vec()).await;
    bench.until(&[next], StateName::Delivered).await;
    worker.stop().await.unwrap();
    assert_eq!(bench.delivery(poison).await.delivery.state, StateName::Processing);
}
