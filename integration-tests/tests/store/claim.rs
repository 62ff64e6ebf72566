//! Claiming (G1), giving back, and what a claim answers about its endpoints.

use std::collections::HashSet;
use std::sync::Arc;

use domain::delivery::ClaimKind;
use domain::endpoint::DisabledCause;
use domain::id::EndpointKey;
use domain::signing::EndpointSecret;
use integration_tests::race::race;
use store::delivery::{ClaimRequest, HeldClaim, Standing};

use crate::fixture::{Fixture, WORKER};

on_both_stores! {
    racing_claims_partition_what_is_due,
    a_claim_takes_the_oldest_due_first_and_no_more_than_asked,
    a_claim_takes_no_more_than_its_total,
    a_claim_stops_at_the_cap_and_goes_on_when_a_slot_is_free,
    a_paused_disabled_deleted_or_unknown_endpoint_is_closed,
    what_is_not_due_yet_is_not_claimed,
    what_is_given_back_is_due_as_before_and_only_its_holder_gives_back,
    what_was_due_long_ago_is_found_without_a_sweep_when_it_is_given_back,
    what_is_named_twice_in_one_call_is_claimed_and_given_back_once,
    a_claim_tells_what_a_worker_needs,
}

async fn racing_claims_partition_what_is_due(db: Fixture) -> anyhow::Result<()> {
    let mut endpoints = Vec::new();
    let mut owed = HashSet::new();
    for _ in 0..6 {
        let endpoint = db.endpoint_with(|settings| settings.in_flight_max = 1_000).await?;
        for _ in 0..20 {
            owed.insert(db.submit(&endpoint).await?);
        }
        endpoints.push(endpoint.key);
    }
    let store = Arc::clone(&db.store);
    let taken = race(0..6, move |_, _| {
        let (store, endpoints) = (Arc::clone(&store), endpoints.clone());
        async move {
            let mut taken = Vec::new();
            loop {
                let request = ClaimRequest {
                    endpoints: &endpoints,
                    per_endpoint: 3,
                    total: 100,
                    worker: WORKER,
                    token: store::new_id::claim_token(),
                    sweep: false,
                };
                let batch = store.claim_due(&request).await?;
                if batch.claimed.is_empty() {
                    return Ok(taken);
                }
                taken.extend(batch.claimed.into_iter().map(|claimed| claimed.delivery));
            }
        }
    })
    .await?;
    let all: Vec<_> = taken.into_iter().flatten().collect();
    assert_eq!(all.len(), owed.len(), "none is taken twice");
    assert_eq!(all.into_iter().collect::<HashSet<_>>(), owed, "none is left");
    Ok(())
}

async fn a_claim_takes_the_oldest_due_first_and_no_more_than_asked(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let mut submitted = Vec::new();
    for _ in 0..5 {
        submitted.push(db.submit(&endpoint).await?);
    }
    db.make_due(submitted[4]).await?;
    let (_, batch) = db.claim(&[&endpoint], 3).await?;
    let claimed: HashSet<_> = batch.claimed.iter().map(|c| c.delivery).collect();
    assert_eq!(claimed.len(), 3);
    assert!(claimed.contains(&submitted[4]), "what has been due for long goes first");
    assert!(claimed.contains(&submitted[0]) && !claimed.contains(&submitted[3]));
    assert_eq!(batch.endpoints, [(endpoint.key, Standing::More)]);
    let (_, batch) = db.claim(&[&endpoint], 3).await?;
    assert_eq!((batch.claimed.len(), batch.endpoints[0].1), (2, Standing::Empty));
    Ok(())
}

async fn a_claim_takes_no_more_than_its_total(db: Fixture) -> anyhow::Result<()> {
    let mut keys = Vec::new();
    for _ in 0..4 {
        let endpoint = db.endpoint().await?;
        for _ in 0..5 {
            db.submit(&endpoint).await?;
        }
        keys.push(endpoint.key);
    }
    let mut request = ClaimRequest {
        endpoints: &keys,
        per_endpoint: 5,
        total: 7,
        worker: WORKER,
        token: store::new_id::claim_token(),
        sweep: false,
    };
    let batch = db.store.claim_due(&request).await?;
    assert_eq!(batch.claimed.len(), 7);
    let more = batch.endpoints.iter().filter(|(_, standing)| *standing == Standing::More);
    assert!(more.count() >= 3, "those that were cut short may have more: {:?}", batch.endpoints);
    request.token = store::new_id::claim_token();
    request.total = 100;
    assert_eq!(db.store.claim_due(&request).await?.claimed.len(), 13);
    Ok(())
}

async fn a_claim_stops_at_the_cap_and_goes_on_when_a_slot_is_free(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint_with(|settings| settings.in_flight_max = 2).await?;
    for _ in 0..4 {
        db.submit(&endpoint).await?;
    }
    let (token, batch) = db.claim(&[&endpoint], 10).await?;
    assert_eq!(batch.claimed.len(), 2);
    assert_eq!(batch.endpoints, [(endpoint.key, Standing::AtCap)]);
    assert_eq!(db.in_flight(&endpoint).await?, (2, 2));
    let (_, none) = db.claim(&[&endpoint], 10).await?;
    assert!(none.claimed.is_empty());
    assert_eq!(none.endpoints, [(endpoint.key, Standing::AtCap)]);
    assert!(db.due_endpoints(false).await?.is_empty(), "an endpoint at its cap is not due");

    let delivery = batch.claimed[0].delivery;
    db.store.give_back(&[HeldClaim { endpoint: endpoint.key, delivery, token }]).await?;
    assert_eq!(db.in_flight(&endpoint).await?, (1, 1));
    let (_, one) = db.claim(&[&endpoint], 10).await?;
    assert_eq!(one.claimed.len(), 1);
    Ok(())
}

async fn a_paused_disabled_deleted_or_unknown_endpoint_is_closed(
    db: Fixture,
) -> anyhow::Result<()> {
    let (paused, disabled, deleted) =
        (db.endpoint().await?, db.endpoint().await?, db.endpoint().await?);
    for endpoint in [&paused, &disabled, &deleted] {
        db.submit(endpoint).await?;
    }
    db.pause(&paused, true).await?;
    db.store.disable_endpoint(disabled.key, disabled.version, DisabledCause::Gone).await?;
    db.delete(&deleted).await?;
    let mut unknown = paused.clone();
    unknown.key = EndpointKey::from_uuid(store::new_id::uuid_now());

    assert!(db.due_endpoints(false).await?.is_empty());
    let (_, batch) = db.claim(&[&paused, &disabled, &deleted, &unknown], 10).await?;
    assert!(batch.claimed.is_empty());
    assert_eq!(batch.endpoints.len(), 4);
    assert!(batch.endpoints.iter().all(|(_, standing)| *standing == Standing::Closed));

    db.pause(&paused, false).await?;
    assert_eq!(db.claim(&[&paused], 10).await?.1.claimed.len(), 1);
    Ok(())
}

async fn what_is_not_due_yet_is_not_claimed(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let claim = db.claim_one(&endpoint).await?;
    let later = crate::fixture::retry(std::time::Duration::from_secs(60));
    db.record(crate::fixture::report(claim, later)).await?;
    assert!(db.due_endpoints(false).await?.is_empty());
    let (_, batch) = db.claim(&[&endpoint], 10).await?;
    assert!(batch.claimed.is_empty());
    assert_eq!(batch.endpoints, [(endpoint.key, Standing::Empty)]);
    db.make_due(delivery).await?;
    assert_eq!(db.claim_one(&endpoint).await?.delivery, delivery);
    Ok(())
}

async fn what_is_given_back_is_due_as_before_and_only_its_holder_gives_back(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let before = db.row(delivery).await?;
    let claim = db.claim_one(&endpoint).await?;
    let stranger = HeldClaim { token: store::new_id::claim_token(), ..claim };
    let held = db.row(delivery).await?;
    assert!(db.store.give_back(&[stranger]).await?.is_empty());
    assert_eq!(db.row(delivery).await?, held, "a stranger changes nothing");

    assert_eq!(db.store.give_back(&[claim]).await?, [delivery]);
    let after = db.row(delivery).await?;
    assert_eq!((after.state, after.due_at, after.lapses), (1, before.due_at, 0));
    assert_eq!((after.claim_token, after.attempts), (None, 0));
    assert_eq!(db.in_flight(&endpoint).await?, (0, 0));
    assert!(db.store.give_back(&[claim]).await?.is_empty(), "it is given back once");
    assert_eq!(db.due_endpoints(false).await?, [endpoint.key], "no sweep is needed to find it");
    assert_eq!(db.claim_one(&endpoint).await?.delivery, delivery);
    Ok(())
}

/// The claim has moved the mark to the younger one's due time, far beyond the older one's.
async fn what_was_due_long_ago_is_found_without_a_sweep_when_it_is_given_back(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let old = db.submit(&endpoint).await?;
    db.submit(&endpoint).await?;
    db.make_due(old).await?;
    let (token, batch) = db.claim(&[&endpoint], 10).await?;
    assert_eq!(batch.claimed.len(), 2);
    db.store.give_back(&[HeldClaim { endpoint: endpoint.key, delivery: old, token }]).await?;
    assert_eq!(db.due_endpoints(false).await?, [endpoint.key]);
    assert_eq!(db.claim_one(&endpoint).await?.delivery, old);
    Ok(())
}

async fn what_is_named_twice_in_one_call_is_claimed_and_given_back_once(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let (token, batch) = db.claim(&[&endpoint, &endpoint], 10).await?;
    let claimed: Vec<_> = batch.claimed.iter().map(|claimed| claimed.delivery).collect();
    assert_eq!(claimed, [delivery]);
    assert_eq!(batch.endpoints, [(endpoint.key, Standing::Empty)]);
    let claim = HeldClaim { endpoint: endpoint.key, delivery, token };
    assert_eq!(db.store.give_back(&[claim, claim]).await?, [delivery]);
    assert_eq!(db.in_flight(&endpoint).await?, (0, 0), "one slot was taken and one freed");
    Ok(())
}

async fn a_claim_tells_what_a_worker_needs(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let new = crate::fixture::submission(&endpoint, None, b"12345")?;
    db.accept_one(&new).await?;
    let (_, batch) = db.claim(&[&endpoint], 1).await?;
    let claimed = &batch.claimed[0];
    assert_eq!((claimed.delivery, claimed.submission), (new.delivery, new.id));
    assert_eq!((claimed.kind, claimed.payload_bytes), (ClaimKind::Fresh, 5));
    assert_eq!((claimed.attempts, claimed.cycle_attempts, claimed.lapses), (0, 0, 0));
    assert_eq!(claimed.lease, domain::delivery::lease::lease_for(endpoint.settings.deadline()));
    let targets = db.store.read_targets(&[endpoint.key]).await?;
    assert_eq!((targets[0].url.as_str(), targets[0].version), (endpoint.url.as_str(), 1));
    assert_eq!(targets[0].settings, endpoint.settings);
    let secrets = targets[0].secrets.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
    assert_eq!(secrets.iter().map(EndpointSecret::expose_bytes).collect::<Vec<_>>(), [[7; 24]]);
    Ok(())
}
