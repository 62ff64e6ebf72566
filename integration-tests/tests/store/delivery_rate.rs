//! The rate of an endpoint: what one window allows, whoever claims.
//!
//! Windows are a day long here, so that none ends by itself within a test.

use std::sync::Arc;
use std::time::Duration;

use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::{ClaimKind, Verdict};
use domain::endpoint::SettingsChange;
use domain::rate_limit::RateLimit;
use integration_tests::race::race;
use store::delivery::{ClaimRequest, Recording, Standing};
use store::endpoint::{Endpoint, EndpointChange};

use crate::fixture::{Fixture, WORKER, report};

on_both_stores! {
    racing_claims_take_what_a_window_allows_and_no_more,
    waiting_for_a_window_costs_no_attempt,
    what_is_reclaimed_spends_the_rate_and_waits_for_it,
    what_is_parked_spends_nothing_and_does_not_wait,
    a_changed_rate_binds_the_next_claim,
    an_endpoint_without_a_rate_is_not_limited_beside_one_with,
}

const DAY: Duration = Duration::from_hours(24);

async fn limited(db: &Fixture, units: u32) -> anyhow::Result<Endpoint> {
    let rate = RateLimit::new(units, DAY)?;
    db.endpoint_with(|settings| settings.delivery_rate = Some(rate)).await
}

async fn change_rate(db: &Fixture, endpoint: &Endpoint, units: Option<u32>) -> anyhow::Result<()> {
    let rate = units.map(|units| RateLimit::new(units, DAY)).transpose()?;
    let settings = SettingsChange { delivery_rate: Some(rate), ..SettingsChange::default() };
    let change = EndpointChange { settings, ..EndpointChange::default() };
    db.store.update_endpoint(DEFAULT_APPLICATION_KEY, &endpoint.id, &change).await?;
    Ok(())
}

async fn racing_claims_take_what_a_window_allows_and_no_more(db: Fixture) -> anyhow::Result<()> {
    let endpoint = limited(&db, 7).await?;
    for _ in 0..20 {
        db.submit(&endpoint).await?;
    }
    let (store, key) = (Arc::clone(&db.store), endpoint.key);
    let taken = race(0..6, move |_, _| {
        let store = Arc::clone(&store);
        async move {
            let mut taken = 0;
            for _ in 0..4 {
                let request = ClaimRequest {
                    endpoints: &[key],
                    per_endpoint: 2,
                    total: 100,
                    worker: WORKER,
                    token: store::new_id::claim_token(),
                    sweep: false,
                };
                taken += store.claim_due(&request).await?.claimed.len();
            }
            Ok(taken)
        }
    })
    .await?;
    assert_eq!(taken.iter().sum::<usize>(), 7, "{taken:?}");
    assert_eq!(db.in_flight(&endpoint).await?, (7, 7));
    Ok(())
}

/// Case C090.
async fn waiting_for_a_window_costs_no_attempt(db: Fixture) -> anyhow::Result<()> {
    let endpoint = limited(&db, 3).await?;
    let mut owed = Vec::new();
    for _ in 0..8 {
        owed.push(db.submit(&endpoint).await?);
    }
    for expected in [3, 3, 2] {
        assert_eq!(db.due_endpoints(false).await?, [endpoint.key]);
        let (token, batch) = db.claim(&[&endpoint], 10).await?;
        assert_eq!(batch.claimed.len(), expected);
        for claimed in &batch.claimed {
            let delivery = claimed.delivery;
            let held = store::delivery::HeldClaim { endpoint: endpoint.key, delivery, token };
            let recorded = db.record(report(held, Verdict::Delivered)).await?;
            assert_eq!(recorded, Recording::Fenced(1), "the first attempt");
        }
        if expected == 3 {
            assert_eq!(batch.endpoints, [(endpoint.key, Standing::Limited)]);
            for sweep in [false, true] {
                assert!(db.due_endpoints(sweep).await?.is_empty(), "nobody comes back for nothing");
            }
            let none = db.claim(&[&endpoint], 10).await?.1;
            assert!(none.claimed.is_empty() && none.set_aside.is_empty());
            assert_eq!(none.endpoints, [(endpoint.key, Standing::Limited)]);
            db.end_rate_window(&endpoint).await?;
        } else {
            assert_eq!(batch.endpoints, [(endpoint.key, Standing::Empty)]);
        }
    }
    for delivery in owed {
        assert_eq!(db.attempts(delivery).await?, [(1, false)]);
    }
    Ok(())
}

async fn what_is_reclaimed_spends_the_rate_and_waits_for_it(db: Fixture) -> anyhow::Result<()> {
    let endpoint = limited(&db, 2).await?;
    let lapsed = [db.submit(&endpoint).await?, db.submit(&endpoint).await?];
    db.submit(&endpoint).await?;
    assert_eq!(db.claim(&[&endpoint], 10).await?.1.claimed.len(), 2);
    for delivery in lapsed {
        db.end_lease(delivery).await?;
    }
    let held = db.row(lapsed[0]).await?;
    assert!(db.due_endpoints(false).await?.is_empty());
    let none = db.claim(&[&endpoint], 10).await?.1;
    assert!(none.claimed.is_empty(), "an expired lease is no way around the rate");
    assert_eq!(none.endpoints, [(endpoint.key, Standing::Limited)]);
    assert_eq!(db.row(lapsed[0]).await?, held);

    db.end_rate_window(&endpoint).await?;
    assert_eq!(db.due_endpoints(false).await?, [endpoint.key], "no sweep is needed");
    let both = db.claim(&[&endpoint], 10).await?.1;
    assert_eq!(both.claimed.len(), 2, "and nothing fresh beside them");
    assert!(both.claimed.iter().all(|claimed| claimed.kind == ClaimKind::Reclaimed));
    assert_eq!(both.endpoints, [(endpoint.key, Standing::Limited)]);
    Ok(())
}

async fn what_is_parked_spends_nothing_and_does_not_wait(db: Fixture) -> anyhow::Result<()> {
    let endpoint = limited(&db, 2).await?;
    let delivery = db.submit(&endpoint).await?;
    for kind in [ClaimKind::Fresh, ClaimKind::Reclaimed] {
        let batch = db.claim(&[&endpoint], 10).await?.1;
        assert_eq!(batch.claimed[0].kind, kind);
        db.end_lease(delivery).await?;
    }
    let batch = db.claim(&[&endpoint], 10).await?.1;
    assert_eq!((batch.claimed.len(), batch.set_aside.len()), (0, 1));
    assert_eq!(db.in_flight(&endpoint).await?, (0, 0), "its slot is free again");
    db.end_rate_window(&endpoint).await?;
    for _ in 0..2 {
        db.submit(&endpoint).await?;
    }
    assert_eq!(db.claim(&[&endpoint], 10).await?.1.claimed.len(), 2);
    Ok(())
}

async fn a_changed_rate_binds_the_next_claim(db: Fixture) -> anyhow::Result<()> {
    let endpoint = limited(&db, 3).await?;
    for _ in 0..9 {
        db.submit(&endpoint).await?;
    }
    assert_eq!(db.claim(&[&endpoint], 10).await?.1.claimed.len(), 3);
    for (units, expected) in [(Some(2), 0), (Some(5), 2), (Some(4), 0), (None, 4)] {
        change_rate(&db, &endpoint, units).await?;
        let claimed = db.claim(&[&endpoint], 10).await?.1.claimed.len();
        assert_eq!(claimed, expected, "{units:?}");
    }
    Ok(())
}

async fn an_endpoint_without_a_rate_is_not_limited_beside_one_with(
    db: Fixture,
) -> anyhow::Result<()> {
    let (slow, free) = (limited(&db, 1).await?, db.endpoint().await?);
    for _ in 0..4 {
        db.submit(&slow).await?;
        db.submit(&free).await?;
    }
    let batch = db.claim(&[&slow, &free], 3).await?.1;
    let of = |endpoint: &Endpoint| {
        let standing = batch.endpoints.iter().find(|(key, _)| *key == endpoint.key);
        let claimed = batch.claimed.iter().filter(|claimed| claimed.endpoint == endpoint.key);
        (claimed.count(), standing.map(|(_, standing)| *standing))
    };
    assert_eq!(of(&slow), (1, Some(Standing::Limited)));
    assert_eq!(of(&free), (3, Some(Standing::More)));
    Ok(())
}
