//! An endpoint whose rate is spent waits for its next window, and costs no claims meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::endpoint::SettingsChange;
use domain::id::PublicId;
use domain::rate_limit::RateLimit;
use store::endpoint::{EndpointChange, EndpointUpdate};

use super::bench::{Bench, eventually, start};
use super::faulty_store::FaultyStore;
use super::site::{Reply, Site};

const ALLOWED: usize = 2;

/// Counted in looks, not in time: the worker goes on to look, and no look finds the endpoint.
#[tokio::test]
async fn an_endpoint_whose_rate_is_spent_is_not_claimed_from_again_and_again() {
    let site = Site::new(|_, _| Reply::Status(200)).await;
    let bench = Bench::new().await;
    let endpoint = bench.endpoint("a", &site.url("/")).await;
    let units = u32::try_from(ALLOWED).unwrap();
    let rate = RateLimit::new(units, Duration::from_hours(24)).unwrap();
    let settings = SettingsChange { delivery_rate: Some(Some(rate)), ..SettingsChange::default() };
    let change = EndpointChange { settings, ..EndpointChange::default() };
    let id = PublicId::parse("a").unwrap();
    let changed = bench.store.update_endpoint(bench.application, &id, &change).await.unwrap();
    assert!(matches!(changed, EndpointUpdate::Updated { .. }), "{changed:?}");
    for number in 0..10_u8 {
        bench.submit(endpoint, vec![number]).await;
    }

    let (looks, claims) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (looked, claimed) = (Arc::clone(&looks), Arc::clone(&claims));
    let store = FaultyStore::new(Arc::clone(&bench.store), move |called, _| {
        match called {
            "find_due_endpoints" => looked.fetch_add(1, Ordering::SeqCst),
            "claim_due" => claimed.fetch_add(1, Ordering::SeqCst),
            _ => 0,
        };
        Ok(())
    });
    let worker = start(store, |settings| settings.sweep_interval = Duration::from_millis(10));
    // Which of them go first is open: they may be due in the same millisecond.
    eventually("what the rate allows", async || site.seen().len() >= ALLOWED).await;
    let before = looks.load(Ordering::SeqCst);
    eventually("many looks", async || looks.load(Ordering::SeqCst) >= before + 50).await;
    worker.stop().await.unwrap();
    let claims = claims.load(Ordering::SeqCst);
    assert!(claims <= ALLOWED, "{claims} claims for {ALLOWED} deliveries");
    assert_eq!(site.seen().len(), ALLOWED);
}
