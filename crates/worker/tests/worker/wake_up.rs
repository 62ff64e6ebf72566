//! A worker that is told does not wait for its poll.

use std::sync::Arc;
use std::time::Duration;

use domain::delivery::StateName;

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
        bench.store.notify_due().await.unwrap();
        bench.until(&[delivery], StateName::Delivered).await;
    }
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn a_wake_up_is_not_lost_to_a_database_that_is_away_at_that_moment() {
    let site = Site::new(|_, _| Reply::Status(200)).await;
    let bench = Bench::new().await;
    let endpoint = bench.endpoint("a", &site.url("/")).await;
    let looks = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let store = FaultyStore::new(Arc::clone(&bench.store), move |called, _| {
        // The second look is the woken one.
        if called == "find_due_endpoints"
            && counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 1
        {
            return Err(super::faulty_store::unavailable());
        }
        Ok(())
    });
    let worker = start(store, |settings| {
        settings.poll_interval = HOUR;
        settings.sweep_interval = HOUR;
    });
    eventually("the first look", async || looks.load(std::sync::atomic::Ordering::Relaxed) == 1)
        .await;
    let delivery = bench.submit(endpoint, vec![1]).await;
    bench.store.notify_due().await.unwrap();
    bench.until(&[delivery], StateName::Delivered).await;
    worker.stop().await.unwrap();
}
