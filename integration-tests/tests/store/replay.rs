//! Replay (G5).

use std::sync::Arc;
use std::time::Duration;

use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::{StateName, Verdict};
use domain::endpoint::DisabledCause;
use domain::id::{ApplicationKey, DeliveryId};
use integration_tests::race::race;
use store::delivery::{Recording, Replay};

use crate::fixture::{Fixture, failure, report, retry};

on_both_stores! {
    of_many_operators_one_replays_and_the_others_are_told_the_state,
    a_replayed_delivery_gets_a_fresh_cycle_and_its_numbers_go_on,
    only_a_failed_delivery_is_replayed,
    a_delivery_that_can_no_longer_be_replayed_says_so,
    a_delivery_of_a_disabled_or_deleted_endpoint_is_not_replayed,
    another_applications_delivery_is_missing,
}

async fn of_many_operators_one_replays_and_the_others_are_told_the_state(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.failed(&endpoint).await?;
    let store = Arc::clone(&db.store);
    let mut answers = race(0..8, move |_, _| {
        let store = Arc::clone(&store);
        async move { Ok(store.replay_failed(DEFAULT_APPLICATION_KEY, delivery).await?) }
    })
    .await?;
    answers.retain(|answer| *answer != Replay::Replayed);
    assert_eq!(answers, [Replay::NotReplayable(StateName::Pending); 7], "one winner");
    assert_eq!(db.row(delivery).await?.state, 1);
    Ok(())
}

async fn a_replayed_delivery_gets_a_fresh_cycle_and_its_numbers_go_on(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.failed(&endpoint).await?;
    db.store.replay_failed(DEFAULT_APPLICATION_KEY, delivery).await?;
    let row = db.row(delivery).await?;
    assert_eq!((row.attempts, row.cycle_attempts, row.reason), (1, 0, None));
    assert_eq!(db.due_endpoints(false).await?, [endpoint.key], "it is due at once");
    let claim = db.claim_one(&endpoint).await?;
    assert_eq!(db.record(report(claim, failure())).await?, Recording::Fenced(2));
    assert_eq!(db.attempts(delivery).await?, [(1, false), (2, false)]);
    Ok(())
}

async fn only_a_failed_delivery_is_replayed(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let refused = async |state| {
        let before = db.row(delivery).await?;
        let answer = db.store.replay_failed(DEFAULT_APPLICATION_KEY, delivery).await?;
        assert_eq!(answer, Replay::NotReplayable(state));
        assert_eq!(db.row(delivery).await?, before);
        anyhow::Ok(())
    };
    refused(StateName::Pending).await?;
    let claim = db.claim_one(&endpoint).await?;
    refused(StateName::Processing).await?;
    // Waiting for its retry, it is due later, as a failed one expires later.
    db.record(report(claim, retry(Duration::from_secs(60)))).await?;
    refused(StateName::Pending).await?;
    db.make_due(delivery).await?;
    let claim = db.claim_one(&endpoint).await?;
    db.record(report(claim, Verdict::Delivered)).await?;
    refused(StateName::Delivered).await
}

async fn a_delivery_that_can_no_longer_be_replayed_says_so(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.failed(&endpoint).await?;
    // A failed delivery's due time is when it expires.
    db.make_due(delivery).await?;
    let answer = db.store.replay_failed(DEFAULT_APPLICATION_KEY, delivery).await?;
    assert_eq!(answer, Replay::Expired);
    let missing = DeliveryId::from_uuid(store::new_id::uuid_now());
    let answer = db.store.replay_failed(DEFAULT_APPLICATION_KEY, missing).await?;
    assert_eq!(answer, Replay::Missing);
    Ok(())
}

async fn a_delivery_of_a_disabled_or_deleted_endpoint_is_not_replayed(
    db: Fixture,
) -> anyhow::Result<()> {
    let (disabled, deleted) = (db.endpoint().await?, db.endpoint().await?);
    let deliveries = [db.failed(&disabled).await?, db.failed(&deleted).await?];
    db.store.disable_endpoint(disabled.key, disabled.version, DisabledCause::Operator).await?;
    db.delete(&deleted).await?;
    for delivery in deliveries {
        let answer = db.store.replay_failed(DEFAULT_APPLICATION_KEY, delivery).await?;
        assert_eq!(answer, Replay::EndpointDisabled);
        assert_eq!(db.row(delivery).await?.state, 3);
    }
    Ok(())
}

async fn another_applications_delivery_is_missing(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.failed(&endpoint).await?;
    let stranger = ApplicationKey::from_uuid(store::new_id::uuid_now());
    assert_eq!(db.store.replay_failed(stranger, delivery).await?, Replay::Missing);
    assert!(db.store.find_delivery(stranger, delivery).await?.is_none());
    assert_eq!(db.row(delivery).await?.state, 3);
    Ok(())
}
