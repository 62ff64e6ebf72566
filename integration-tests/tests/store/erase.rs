//! Erasing a payload: the bytes are gone, and nothing of them is owed any more.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::{ApplicationKey, DeliveryId, SubmissionId};
use integration_tests::race::race;
use store::delivery::{ClaimRequest, Recording, Replay};
use store::endpoint::Endpoint;
use store::submission::Acceptance;

use crate::fixture::{Fixture, WORKER, report, retry, submission};

on_both_stores! {
    the_bytes_are_gone_and_the_rest_of_the_submission_stays,
    what_is_owed_for_an_erased_payload_is_cancelled,
    what_a_worker_has_of_an_erased_payload_is_cancelled_by_its_report,
    a_strangers_payload_is_not_erased,
    of_a_claim_and_an_erasure_at_once_nothing_stays_owed,
}

async fn submitted(
    db: &Fixture,
    endpoint: &Endpoint,
) -> anyhow::Result<(SubmissionId, DeliveryId)> {
    let new = submission(endpoint, None, b"personal")?;
    db.accept_one(&new).await?;
    Ok((new.id, new.delivery))
}

async fn erase(db: &Fixture, submission: SubmissionId) -> anyhow::Result<bool> {
    Ok(db.store.erase_payload(DEFAULT_APPLICATION_KEY, submission).await?)
}

async fn the_bytes_are_gone_and_the_rest_of_the_submission_stays(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let new = submission(&endpoint, Some("k"), b"personal")?;
    db.accept_one(&new).await?;
    assert!(erase(&db, new.id).await?);
    assert!(db.store.read_payloads(&[(endpoint.key, new.id)]).await?.is_empty());
    let found =
        db.store.find_submission(DEFAULT_APPLICATION_KEY, new.id).await?.context("found")?;
    assert_eq!(found.payload_bytes, 8);
    assert!(found.erased_at.is_some());
    assert!(erase(&db, new.id).await?, "again is no error");
    let again = db.store.find_submission(DEFAULT_APPLICATION_KEY, new.id).await?;
    assert_eq!(again, Some(found), "and changes nothing");
    let repeated = db.accept_one(&submission(&endpoint, Some("k"), b"personal")?).await?;
    assert!(matches!(repeated, Acceptance::Replayed(_)), "the key still stands for it");
    Ok(())
}

async fn what_is_owed_for_an_erased_payload_is_cancelled(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let (id, pending) = submitted(&db, &endpoint).await?;
    erase(&db, id).await?;
    let failed = db.failed(&endpoint).await?;
    erase(&db, db.detail(failed).await?.delivery.submission).await?;
    for delivery in [pending, failed] {
        let row = db.row(delivery).await?;
        assert_eq!((row.state, row.reason), (5, Some(23)));
        let replay = db.store.replay_failed(DEFAULT_APPLICATION_KEY, delivery).await?;
        assert_eq!(replay, Replay::PayloadErased);
    }
    assert!(db.due_endpoints(true).await?.is_empty());
    Ok(())
}

async fn what_a_worker_has_of_an_erased_payload_is_cancelled_by_its_report(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let (id, delivery) = submitted(&db, &endpoint).await?;
    let claim = db.claim_one(&endpoint).await?;
    erase(&db, id).await?;
    assert_eq!(db.row(delivery).await?.state, 2, "its request may be out");
    let later = retry(Duration::from_secs(5));
    assert_eq!(db.record(report(claim, later)).await?, Recording::Fenced(1));
    assert_eq!(db.row(delivery).await?.state, 5);
    assert_eq!(db.in_flight(&endpoint).await?, (0, 0));
    Ok(())
}

async fn a_strangers_payload_is_not_erased(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let (id, delivery) = submitted(&db, &endpoint).await?;
    let stranger = ApplicationKey::from_uuid(store::new_id::uuid_now());
    assert!(!db.store.erase_payload(stranger, id).await?);
    assert_eq!(db.store.read_payloads(&[(endpoint.key, id)]).await?.len(), 1);
    assert_eq!(db.row(delivery).await?.state, 1);
    Ok(())
}

async fn of_a_claim_and_an_erasure_at_once_nothing_stays_owed(db: Fixture) -> anyhow::Result<()> {
    for _ in 0..10 {
        let endpoint = db.endpoint().await?;
        let (id, delivery) = submitted(&db, &endpoint).await?;
        let (store, key) = (Arc::clone(&db.store), endpoint.key);
        let claimed = race([true, false], move |_, erases| {
            let store = Arc::clone(&store);
            async move {
                if erases {
                    assert!(store.erase_payload(DEFAULT_APPLICATION_KEY, id).await?);
                    return Ok(0);
                }
                let request = ClaimRequest {
                    endpoints: &[key],
                    per_endpoint: 1,
                    total: 1,
                    worker: WORKER,
                    token: store::new_id::claim_token(),
                    sweep: true,
                };
                Ok(store.claim_due(&request).await?.claimed.len())
            }
        })
        .await?;
        if claimed[1] == 1 {
            assert_eq!(db.row(delivery).await?.state, 2);
            db.end_lease(delivery).await?;
            assert_eq!(
                db.claim(&[&endpoint], 1).await?.1.claimed.len(),
                0,
                "nobody takes it again"
            );
            assert_eq!(db.store.cancel_requested(10).await?, 1);
        }
        assert_eq!(db.row(delivery).await?.state, 5);
        assert_eq!(db.in_flight(&endpoint).await?, (0, 0));
    }
    Ok(())
}
