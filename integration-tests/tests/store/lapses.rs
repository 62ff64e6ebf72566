//! Claims whose lease ended with no report.

use std::sync::Arc;

use domain::delivery::{ClaimKind, Verdict};
use domain::id::DeliveryId;
use integration_tests::race::race;
use store::delivery::{ClaimRequest, HeldClaim, Recording, Standing};
use store::endpoint::Endpoint;

use crate::fixture::{Fixture, WORKER, report};

on_both_stores! {
    an_expired_lease_is_reclaimed_by_exactly_one_of_racing_workers,
    a_live_lease_is_not_reclaimed,
    a_first_lapse_is_reclaimed_beyond_the_cap_and_takes_no_second_slot,
    a_second_lapse_is_parked_with_its_slot_freed_and_its_token_kept,
    a_claim_that_parks_as_many_as_it_looked_for_says_that_there_may_be_more,
    the_tenth_lapse_within_a_day_is_parked_and_after_a_day_abandoned,
    a_late_success_delivers_what_was_abandoned_and_frees_no_slot_twice,
    a_fenced_report_forgets_the_lapses,
}

/// Claims the delivery and lets the lease pass, `times` times in a row, parks included.
async fn lapse(
    db: &Fixture,
    endpoint: &Endpoint,
    delivery: DeliveryId,
    times: i32,
) -> anyhow::Result<HeldClaim> {
    let mut held = db.claim_one(endpoint).await?;
    db.end_lease(delivery).await?;
    while db.row(delivery).await?.lapses < times - 1 {
        // Either takes the lapsed claim over or parks it.
        let (token, batch) = db.claim(&[endpoint], 10).await?;
        if batch.claimed.is_empty() {
            db.make_due(delivery).await?;
            held = db.claim_one(endpoint).await?;
        } else {
            held.token = token;
        }
        db.end_lease(delivery).await?;
    }
    Ok(held)
}

async fn an_expired_lease_is_reclaimed_by_exactly_one_of_racing_workers(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let lapsed = db.claim_one(&endpoint).await?;
    db.end_lease(delivery).await?;
    assert_eq!(db.due_endpoints(false).await?, [endpoint.key]);
    let store = Arc::clone(&db.store);
    let batches = race(0..8, move |_, _| {
        let store = Arc::clone(&store);
        async move {
            let request = ClaimRequest {
                endpoints: &[endpoint.key],
                per_endpoint: 10,
                total: 10,
                worker: "rival",
                token: store::new_id::claim_token(),
                sweep: false,
            };
            Ok(store.claim_due(&request).await?)
        }
    })
    .await?;
    let claimed: Vec<_> = batches.into_iter().flat_map(|batch| batch.claimed).collect();
    assert_eq!(claimed.len(), 1, "one winner");
    assert_eq!(claimed[0].kind, ClaimKind::Reclaimed);
    assert_eq!(claimed[0].lapsed_worker.as_deref(), Some(WORKER), "the lapse has a name");
    let row = db.row(delivery).await?;
    assert_eq!((row.state, row.lapses), (2, 1));
    assert!(row.claim_token.is_some_and(|token| token != lapsed.token));
    Ok(())
}

async fn a_live_lease_is_not_reclaimed(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    db.claim_one(&endpoint).await?;
    let held = db.row(delivery).await?;
    let (_, batch) = db.claim(&[&endpoint], 10).await?;
    assert!(batch.claimed.is_empty() && batch.set_aside.is_empty());
    assert_eq!(db.row(delivery).await?, held);
    Ok(())
}

async fn a_first_lapse_is_reclaimed_beyond_the_cap_and_takes_no_second_slot(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint_with(|settings| settings.in_flight_max = 1).await?;
    let delivery = db.submit(&endpoint).await?;
    db.submit(&endpoint).await?;
    db.claim_one(&endpoint).await?;
    db.end_lease(delivery).await?;
    let (_, batch) = db.claim(&[&endpoint], 10).await?;
    let kinds: Vec<_> = batch.claimed.iter().map(|c| (c.delivery, c.kind)).collect();
    assert_eq!(kinds, [(delivery, ClaimKind::Reclaimed)], "a killed worker blocks no endpoint");
    assert_eq!(db.in_flight(&endpoint).await?, (1, 1));
    Ok(())
}

async fn a_second_lapse_is_parked_with_its_slot_freed_and_its_token_kept(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let held = lapse(&db, &endpoint, delivery, 2).await?;
    let (_, batch) = db.claim(&[&endpoint], 10).await?;
    assert!(batch.claimed.is_empty(), "what is parked is not to be sent");
    assert_eq!(batch.set_aside.len(), 1);
    assert_eq!((batch.set_aside[0].kind, batch.set_aside[0].lapses), (ClaimKind::Parked, 2));
    let row = db.row(delivery).await?;
    assert_eq!((row.state, row.lapses, row.claim_token), (1, 2, Some(held.token)));
    assert_eq!(db.in_flight(&endpoint).await?, (0, 0));
    assert!(db.claim(&[&endpoint], 10).await?.1.claimed.is_empty(), "it comes back later");

    assert_eq!(db.record(report(held, Verdict::Delivered)).await?, Recording::Fenced(1));
    assert!(db.row(delivery).await?.settled, "the slow holder's report counts");
    assert_eq!(db.in_flight(&endpoint).await?, (0, 0), "no slot is freed twice");
    Ok(())
}

async fn a_claim_that_parks_as_many_as_it_looked_for_says_that_there_may_be_more(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let deliveries = [db.submit(&endpoint).await?, db.submit(&endpoint).await?];
    for _ in 0..2 {
        db.claim(&[&endpoint], 10).await?;
        for delivery in deliveries {
            db.end_lease(delivery).await?;
        }
    }
    for standing in [Standing::More, Standing::More, Standing::Empty] {
        let (_, batch) = db.claim(&[&endpoint], 1).await?;
        assert!(batch.claimed.is_empty());
        assert_eq!(batch.endpoints, [(endpoint.key, standing)]);
    }
    Ok(())
}

async fn the_tenth_lapse_within_a_day_is_parked_and_after_a_day_abandoned(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    lapse(&db, &endpoint, delivery, 10).await?;
    let (_, batch) = db.claim(&[&endpoint], 10).await?;
    assert_eq!(batch.set_aside[0].kind, ClaimKind::Parked, "a crash-looping deploy fails nobody");
    db.make_due(delivery).await?;
    let held = db.claim_one(&endpoint).await?;
    db.end_lease(delivery).await?;
    db.age_lapses(delivery).await?;
    let (_, batch) = db.claim(&[&endpoint], 10).await?;
    assert_eq!((batch.set_aside[0].kind, batch.set_aside[0].lapses), (ClaimKind::Abandoned, 11));
    let row = db.row(delivery).await?;
    assert_eq!((row.state, row.reason, row.claim_token), (3, Some(4), Some(held.token)));
    assert_eq!((row.attempts, db.in_flight(&endpoint).await?), (0, (0, 0)));
    Ok(())
}

async fn a_late_success_delivers_what_was_abandoned_and_frees_no_slot_twice(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let held = lapse(&db, &endpoint, delivery, 10).await?;
    db.age_lapses(delivery).await?;
    db.claim(&[&endpoint], 10).await?;
    assert_eq!(db.row(delivery).await?.state, 3);
    assert_eq!(db.record(report(held, Verdict::Delivered)).await?, Recording::Fenced(1));
    let row = db.row(delivery).await?;
    assert_eq!((row.state, row.settled), (4, true));
    assert_eq!(db.in_flight(&endpoint).await?, (0, 0));
    Ok(())
}

async fn a_fenced_report_forgets_the_lapses(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let held = lapse(&db, &endpoint, delivery, 3).await?;
    let later = crate::fixture::retry(std::time::Duration::from_secs(5));
    assert_eq!(db.record(report(held, later)).await?, Recording::Fenced(1));
    assert_eq!(db.row(delivery).await?.lapses, 0);
    db.make_due(delivery).await?;
    db.claim_one(&endpoint).await?;
    db.end_lease(delivery).await?;
    let (_, batch) = db.claim(&[&endpoint], 10).await?;
    assert_eq!(batch.claimed[0].kind, ClaimKind::Reclaimed, "the next lapse is a first one");
    Ok(())
}
