//! Upkeep by the worker that leads.

use std::time::Duration;

use domain::delivery::StateName;
use domain::id::{DeliveryId, PublicId};
use store::maintenance::Candidacy;
use uuid::Uuid;

use super::bench::{Bench, start};
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
