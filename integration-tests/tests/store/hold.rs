//! The hold: nothing is claimed while it is on, what waits is told, and what was sent is marked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::ensure;
use domain::delivery::Verdict;
use domain::id::EndpointKey;
use integration_tests::race::race;
use store::delivery::{ClaimRequest, Recording, Standing};
use uuid::Uuid;

use crate::fixture::{Fixture, WORKER, failure, report};

on_both_stores! {
    nothing_is_claimed_under_a_hold_and_everything_after_it,
    a_claim_from_before_is_counted_until_it_is_reported_or_over,
    what_waits_is_told_by_endpoint_and_marked_as_sent_by_when_it_was_submitted,
    nothing_is_marked_as_sent_without_a_hold,
    claims_beside_a_hold_are_from_before_it_or_empty,
    of_operators_at_once_the_last_one_stays_on_every_endpoint,
}

async fn nothing_is_claimed_under_a_hold_and_everything_after_it(
    db: Fixture,
) -> anyhow::Result<()> {
    let before = db.endpoint().await?;
    db.submit(&before).await?;
    assert!(!db.store.is_held().await?);
    db.store.set_hold(true, Some("a restore")).await?;
    assert!(db.store.is_held().await?);
    let during = db.endpoint().await?;
    db.submit(&during).await?;
    assert!(db.due_endpoints(false).await?.is_empty() && db.due_endpoints(true).await?.is_empty());
    let (_, batch) = db.claim(&[&before, &during], 10).await?;
    assert!(batch.claimed.is_empty());
    assert!(batch.endpoints.iter().all(|(_, standing)| *standing == Standing::Closed));
    let hold = db.store.read_hold().await?;
    assert!(hold.held && hold.since.is_some() && hold.endpoints_behind == 0, "{hold:?}");
    assert_eq!((hold.reason.as_deref(), hold.open_claims), (Some("a restore"), 0));

    db.run("delete from {}endpoint_schedule where endpoint = $1", before.key.as_uuid()).await?;
    assert_eq!(db.store.recount_slots(None, 10).await?.made, 1);
    assert!(db.due_endpoints(true).await?.is_empty(), "a row that is made anew is held too");

    db.store.set_hold(false, None).await?;
    assert_eq!(db.due_endpoints(true).await?.len(), 2);
    let (_, batch) = db.claim(&[&before, &during], 10).await?;
    assert_eq!(batch.claimed.len(), 2);
    assert_eq!(db.store.read_hold().await?.reason, None);
    Ok(())
}

async fn a_claim_from_before_is_counted_until_it_is_reported_or_over(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let [_, lapsing] = [db.submit(&endpoint).await?, db.submit(&endpoint).await?];
    let reported = db.claim_one(&endpoint).await?;
    let other = db.claim_one(&endpoint).await?;
    let lapsing = if other.delivery == lapsing { other } else { reported };
    let reported = if lapsing.delivery == other.delivery { reported } else { other };
    db.store.set_hold(true, None).await?;
    let hold = db.store.read_hold().await?;
    assert_eq!(hold.open_claims, 2);
    assert!(!hold.longest_lease.is_zero(), "{hold:?}");
    assert_eq!(db.record(report(reported, Verdict::Delivered)).await?, Recording::Fenced(1));
    assert_eq!(db.store.read_hold().await?.open_claims, 1);
    db.end_lease(lapsing.delivery).await?;
    assert_eq!(db.store.read_hold().await?.open_claims, 0);
    let (_, batch) = db.claim(&[&endpoint], 10).await?;
    assert!(batch.claimed.is_empty(), "what lapsed is not taken over under a hold");
    Ok(())
}

async fn what_waits_is_told_by_endpoint_and_marked_as_sent_by_when_it_was_submitted(
    db: Fixture,
) -> anyhow::Result<()> {
    let (left, right) = (db.endpoint().await?, db.endpoint().await?);
    let lapsed = db.submit(&left).await?;
    let claim = db.claim_one(&left).await?;
    db.end_lease(lapsed).await?;
    let old = db.submit(&left).await?;
    let failed = db.failed(&right).await?;
    let other = db.submit(&right).await?;
    // Ids made in one millisecond have no order: the border is one that all of these are below.
    let border = Uuid::from_u128(store::new_id::uuid_now().as_u128() + (1 << 80));
    db.store.set_hold(true, None).await?;
    let young = next_after(&db, &left, border).await?;

    let due = |waiting: Vec<store::hold::WaitingEndpoint>| -> Vec<(String, u64)> {
        let mut due: Vec<_> = waiting.into_iter().map(|it| (it.endpoint, it.due)).collect();
        due.sort();
        due
    };
    let mut expected = vec![(left.id.to_string(), 3), (right.id.to_string(), 1)];
    expected.sort();
    assert_eq!(due(db.store.read_waiting(None).await?), expected);
    for it in &mut expected {
        it.1 = it.1.min(2);
    }
    assert_eq!(due(db.store.read_waiting(Some(border)).await?), expected);

    assert_eq!(db.store.mark_sent(border, 2).await?, 2);
    assert_eq!(db.store.mark_sent(border, 2).await?, 1);
    for delivery in [lapsed, old, other] {
        let row = db.row(delivery).await?;
        assert_eq!((row.state, row.reason, row.settled), (5, Some(24), true));
    }
    assert_eq!((db.row(young).await?.state, db.row(failed).await?.state), (1, 3));
    assert_eq!(db.in_flight(&left).await?, (0, 0), "the lapsed one has freed its slot");
    assert_eq!(db.record(report(claim, failure())).await?, Recording::Late(1));
    db.store.set_hold(false, None).await?;
    assert_eq!(db.claim_one(&left).await?.delivery, young);
    Ok(())
}

/// A delivery whose id is above the border.
async fn next_after(
    db: &Fixture,
    endpoint: &store::endpoint::Endpoint,
    border: Uuid,
) -> anyhow::Result<domain::id::DeliveryId> {
    let mut new = crate::fixture::submission(endpoint, None, b"{}")?;
    let above = |id: Uuid| Uuid::from_u128(id.as_u128().max(border.as_u128()) + 1);
    new.id = domain::id::SubmissionId::from_uuid(above(new.id.as_uuid()));
    new.delivery = domain::id::DeliveryId::from_uuid(above(new.delivery.as_uuid()));
    db.accept_one(&new).await?;
    Ok(new.delivery)
}

async fn nothing_is_marked_as_sent_without_a_hold(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    assert_eq!(db.store.mark_sent(Uuid::max(), 10).await?, 0);
    assert_eq!(db.row(delivery).await?.state, 1);
    Ok(())
}

async fn claims_beside_a_hold_are_from_before_it_or_empty(db: Fixture) -> anyhow::Result<()> {
    const CLAIMERS: usize = 4;
    let mut endpoints: Vec<EndpointKey> = Vec::new();
    for _ in 0..8 {
        let endpoint = db.endpoint().await?;
        endpoints.push(endpoint.key);
        for _ in 0..20 {
            db.submit(&endpoint).await?;
        }
    }
    let held = Arc::new(AtomicBool::new(false));
    let store = Arc::clone(&db.store);
    let claimed = race(0..=CLAIMERS, move |place, _| {
        let (store, held, endpoints) = (Arc::clone(&store), Arc::clone(&held), endpoints.clone());
        async move {
            if place == CLAIMERS {
                store.set_hold(true, None).await?;
                held.store(true, Ordering::SeqCst);
                return Ok(0);
            }
            let mut taken = 0;
            loop {
                let is_after = held.load(Ordering::SeqCst);
                let request = ClaimRequest {
                    endpoints: &endpoints,
                    per_endpoint: 1,
                    total: 3,
                    worker: WORKER,
                    token: store::new_id::claim_token(),
                    sweep: true,
                };
                let batch = store.claim_due(&request).await?;
                ensure!(!is_after || batch.claimed.is_empty(), "claimed under the hold");
                taken += batch.claimed.len();
                if is_after {
                    return Ok(taken);
                }
            }
        }
    })
    .await?;
    let claimed: usize = claimed.into_iter().sum();
    let hold = db.store.read_hold().await?;
    assert_eq!((hold.open_claims, hold.endpoints_behind), (claimed as u64, 0));
    Ok(())
}

async fn of_operators_at_once_the_last_one_stays_on_every_endpoint(
    db: Fixture,
) -> anyhow::Result<()> {
    for _ in 0..10 {
        db.endpoint().await?;
    }
    let store = Arc::clone(&db.store);
    race(0..6, move |place, _| {
        let store = Arc::clone(&store);
        async move { Ok(store.set_hold(place % 2 == 0, None).await?) }
    })
    .await?;
    let hold = db.store.read_hold().await?;
    assert_eq!(hold.endpoints_behind, 0, "{hold:?}");
    Ok(())
}
