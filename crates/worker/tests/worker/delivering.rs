//! From the row to the recorded attempt.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::delivery::{FailureReason, StateName};
use domain::endpoint::DisabledCause;
use store::StoreError;

use super::bench::{Bench, start};
use super::faulty_store::{FaultyStore, refused};
use super::site::{Reply, Site};

#[tokio::test]
async fn every_delivery_is_sent_once_and_recorded_with_its_attempt() {
    let site = Site::new(|_, _| Reply::Status(204)).await;
    let bench = Bench::new().await;
    let mut deliveries = Vec::new();
    for name in ["a", "b", "c"] {
        let endpoint = bench.endpoint(name, &site.url(&format!("/{name}"))).await;
        for number in 0..20 {
            deliveries.push(bench.submit(endpoint, format!("{name} {number}").into_bytes()).await);
        }
    }
    let worker = start(Arc::clone(&bench.store), |settings| settings.concurrency = 8);
    bench.until(&deliveries, StateName::Delivered).await;
    worker.stop().await.unwrap();

    let seen = site.seen();
    assert_eq!(seen.len(), 60);
    assert_eq!(seen.iter().map(|it| &it.webhook_id).collect::<BTreeSet<_>>().len(), 60);
    assert_eq!(seen.iter().map(|it| &it.body).collect::<BTreeSet<_>>().len(), 60);
    for id in deliveries {
        let detail = bench.delivery(id).await;
        assert_eq!((detail.delivery.attempts, detail.delivery.lapses), (1, 0));
        let attempt = &detail.attempts[0];
        assert_eq!((attempt.number, attempt.status, attempt.late), (1, Some(204), false));
        assert_eq!(attempt.worker, "tested");
        assert!(attempt.evidence.url.starts_with(&site.url("/")));
    }
}

#[tokio::test]
async fn what_failed_is_tried_again_with_the_same_id_and_body() {
    let site = Site::new(|_, before| Reply::Status(if before < 2 { 503 } else { 200 })).await;
    let bench = Bench::new().await;
    let endpoint = bench.endpoint("a", &site.url("/a")).await;
    let delivery = bench.submit(endpoint, b"\x00\xff payload".to_vec()).await;
    let worker = start(Arc::clone(&bench.store), |_| {});
    bench.until(&[delivery], StateName::Delivered).await;
    worker.stop().await.unwrap();
    let seen = site.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|it| *it == seen[0]));
    let statuses: Vec<_> =
        bench.delivery(delivery).await.attempts.iter().map(|a| a.status).collect();
    assert_eq!(statuses, [Some(503), Some(503), Some(200)]);
}

/// Case C027.
#[tokio::test]
async fn a_cycle_ends() {
    let site = Site::new(|_, _| Reply::Status(403)).await;
    let bench = Bench::new().await;
    let endpoint = bench.endpoint("a", &site.url("/a")).await;
    let delivery = bench.submit(endpoint, b"x".to_vec()).await;
    let worker = start(Arc::clone(&bench.store), |_| {});
    bench.until(&[delivery], StateName::Failed).await;
    worker.stop().await.unwrap();
    assert_eq!(site.seen().len(), 3);
    let detail = bench.delivery(delivery).await;
    assert_eq!(detail.delivery.failure, Some(FailureReason::AttemptsExhausted));
}

/// Case C026.
#[tokio::test]
async fn an_endpoint_that_is_gone_is_disabled_and_gets_no_more_requests() {
    let site = Site::new(|_, _| Reply::Status(410)).await;
    let bench = Bench::new().await;
    let endpoint = bench.endpoint("a", &site.url("/a")).await;
    let first = bench.submit(endpoint, b"x".to_vec()).await;
    let worker = start(Arc::clone(&bench.store), |_| {});
    bench.until(&[first], StateName::Failed).await;
    worker.stop().await.unwrap();
    assert_eq!(bench.find_endpoint("a").await.disabled, Some(DisabledCause::Gone));

    let second = bench.submit(endpoint, b"y".to_vec()).await;
    let other = bench.endpoint("b", &site.url("/b")).await;
    let control = bench.submit(other, b"z".to_vec()).await;
    let worker = start(Arc::clone(&bench.store), |_| {});
    bench.until(&[control], StateName::Failed).await;
    worker.stop().await.unwrap();
    assert_eq!(bench.delivery(second).await.delivery.state, StateName::Pending);
    assert_eq!(site.seen().iter().filter(|it| it.path == "/a").count(), 1);
}

/// Case C091: the one that hangs has its cap, and gets no more than its share of the worker.
#[tokio::test]
async fn a_receiver_that_hangs_does_not_hold_up_another() {
    let site = Site::new(|seen, _| match seen.path.as_str() {
        "/hangs" => Reply::Held,
        _ => Reply::Status(200),
    })
    .await;
    let bench = Bench::new().await;
    let hanging = bench.endpoint("hangs", &site.url("/hangs")).await;
    let healthy = bench.endpoint("healthy", &site.url("/healthy")).await;
    let (mut held, mut sent) = (Vec::new(), Vec::new());
    for number in 0..30_u8 {
        held.push(bench.submit(hanging, vec![number]).await);
        sent.push(bench.submit(healthy, vec![number]).await);
    }
    let worker = start(Arc::clone(&bench.store), |settings| settings.concurrency = 8);
    bench.until(&sent, StateName::Delivered).await;
    let hanging = site.seen().iter().filter(|it| it.path == "/hangs").count();
    assert!((1..=4).contains(&hanging), "{hanging}");
    site.release();
    bench.until(&held, StateName::Delivered).await;
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn payloads_that_exceed_the_memory_together_or_alone_are_all_sent() {
    let site = Site::new(|_, _| Reply::Status(200)).await;
    let bench = Bench::new().await;
    let mut deliveries = Vec::new();
    for (name, bytes) in [("a", 100_000), ("b", 1_000), ("c", 50_000)] {
        let endpoint = bench.endpoint(name, &site.url("/")).await;
        for _ in 0..6 {
            deliveries.push(bench.submit(endpoint, vec![b'x'; bytes]).await);
        }
    }
    let worker = start(Arc::clone(&bench.store), |settings| {
        settings.payload_memory_bytes = 64 * 1024;
    });
    bench.until(&deliveries, StateName::Delivered).await;
    worker.stop().await.unwrap();
    assert_eq!(site.seen().len(), 18);
}

#[tokio::test]
async fn what_cannot_be_read_is_an_attempt_that_says_why() {
    let site = Site::new(|_, _| Reply::Status(200)).await;
    let bench = Bench::new().await;
    for (name, call) in [("targets", "read_targets"), ("payloads", "read_payloads")] {
        let endpoint = bench.endpoint(name, &site.url("/")).await;
        let delivery = bench.submit(endpoint, b"x".to_vec()).await;
        let store = FaultyStore::new(Arc::clone(&bench.store), move |called, _| {
            if called == call { Err(refused()) } else { Ok(()) }
        });
        let worker = start(store, |_| {});
        super::bench::eventually("an attempt", async || {
            bench.delivery(delivery).await.delivery.attempts > 0
        })
        .await;
        worker.stop().await.unwrap();
        let attempt = bench.delivery(delivery).await.attempts.remove(0);
        assert_eq!(attempt.outcome, "unsendable");
        assert!(attempt.evidence.detail.unwrap().contains("it refuses"));
    }
    assert_eq!(site.seen().len(), 0);
}

#[tokio::test]
async fn a_schema_that_it_cannot_use_ends_the_worker() {
    let bench = Bench::new().await;
    let store = FaultyStore::new(Arc::clone(&bench.store), |called, _| match called {
        "check" => Err(StoreError::SchemaOutdated { found: 0, needed: 1 }),
        _ => Ok(()),
    });
    let mut worker = start(store, |_| {});
    assert!(!worker.running.started().await);
    let error = worker.finished().await.unwrap_err();
    assert!(format!("{error:#}").contains("fencepost migrate"), "{error:#}");
}
