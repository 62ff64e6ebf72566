//! Cancelling: at once what nobody holds, with the report what somebody does.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::{StateName, Verdict};
use domain::id::{ApplicationKey, DeliveryId};
use integration_tests::race::race;
use store::delivery::{Cancellation, ClaimRequest, DeliveryFilter, HeldClaim, Recording};
use store::endpoint::Endpoint;
use store::{CreatedWindow, Page};

use crate::fixture::{Fixture, WORKER, failure, report, retry};

on_both_stores! {
    what_is_owed_or_replayable_is_cancelled_at_once,
    a_delivery_that_a_worker_has_is_cancelled_by_its_report_unless_it_was_delivered,
    a_cancellation_after_the_report_finds_what_the_report_left,
    giving_back_a_delivery_that_was_called_off_cancels_it,
    a_settled_delivery_says_its_state_and_a_strangers_is_missing,
    of_a_claim_and_a_cancellation_at_once_the_second_sees_the_first,
    of_a_report_and_a_cancellation_at_once_the_second_sees_the_first,
    what_was_called_off_and_lapsed_is_cancelled_by_upkeep,
}

async fn cancel(db: &Fixture, delivery: DeliveryId) -> anyhow::Result<Cancellation> {
    Ok(db.store.cancel_delivery(DEFAULT_APPLICATION_KEY, delivery).await?)
}

async fn held(db: &Fixture) -> anyhow::Result<(Endpoint, DeliveryId, HeldClaim)> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let claim = db.claim_one(&endpoint).await?;
    Ok((endpoint, delivery, claim))
}

/// Whether the endpoint's one delivery is shown as called off, by itself and in lists of all and of its state.
async fn is_called_off(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<bool> {
    let mut shown = Vec::new();
    for state in [None, Some(StateName::Processing)] {
        let filter = DeliveryFilter {
            application: DEFAULT_APPLICATION_KEY,
            endpoint: Some(endpoint.key),
            state,
            created: CreatedWindow::default(),
            page: Page { limit: 10, before: None },
        };
        shown.extend(db.store.list_deliveries(filter).await?);
    }
    let id = shown.first().context("a delivery")?.id;
    shown.push(db.detail(id).await?.delivery);
    assert!(shown.iter().all(|it| *it == shown[0]), "{shown:?}");
    Ok(shown[0].cancel_requested)
}

/// The delivery is cancelled by an operator and holds no slot.
async fn assert_cancelled(
    db: &Fixture,
    endpoint: &Endpoint,
    delivery: DeliveryId,
) -> anyhow::Result<()> {
    let row = db.row(delivery).await?;
    assert_eq!((row.state, row.reason, row.settled), (5, Some(21), true));
    assert_eq!(db.in_flight(endpoint).await?, (0, 0));
    Ok(())
}

async fn what_is_owed_or_replayable_is_cancelled_at_once(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let failed = db.failed(&endpoint).await?;
    let pending = db.submit(&endpoint).await?;
    for delivery in [failed, pending] {
        assert_eq!(cancel(&db, delivery).await?, Cancellation::Cancelled);
        assert_cancelled(&db, &endpoint, delivery).await?;
        let again = cancel(&db, delivery).await?;
        assert_eq!(again, Cancellation::NotCancellable(StateName::Cancelled));
    }
    assert_eq!(db.attempts(failed).await?, [(1, false)], "history stays");
    assert!(db.due_endpoints(true).await?.is_empty());
    Ok(())
}

async fn a_delivery_that_a_worker_has_is_cancelled_by_its_report_unless_it_was_delivered(
    db: Fixture,
) -> anyhow::Result<()> {
    for (verdict, state) in
        [(Verdict::Delivered, 4), (retry(Duration::from_secs(5)), 5), (failure(), 5)]
    {
        let (endpoint, delivery, claim) = held(&db).await?;
        assert!(!is_called_off(&db, &endpoint).await?);
        for _ in 0..2 {
            assert_eq!(cancel(&db, delivery).await?, Cancellation::Requested);
        }
        assert!(is_called_off(&db, &endpoint).await?);
        assert_eq!(db.row(delivery).await?.state, 2);
        assert_eq!(db.in_flight(&endpoint).await?, (1, 1), "the slot is its worker's");
        assert_eq!(db.record(report(claim, verdict)).await?, Recording::Fenced(1));
        assert_eq!(db.row(delivery).await?.state, state);
        assert!(!is_called_off(&db, &endpoint).await?, "it is settled");
        assert_eq!(db.in_flight(&endpoint).await?, (0, 0));
    }
    Ok(())
}

async fn a_cancellation_after_the_report_finds_what_the_report_left(
    db: Fixture,
) -> anyhow::Result<()> {
    let (endpoint, delivery, claim) = held(&db).await?;
    db.record(report(claim, retry(Duration::from_secs(5)))).await?;
    assert_eq!(cancel(&db, delivery).await?, Cancellation::Cancelled);
    assert_cancelled(&db, &endpoint, delivery).await?;
    let (_, delivery, claim) = held(&db).await?;
    db.record(report(claim, Verdict::Delivered)).await?;
    let answer = cancel(&db, delivery).await?;
    assert_eq!(answer, Cancellation::NotCancellable(StateName::Delivered));
    Ok(())
}

async fn giving_back_a_delivery_that_was_called_off_cancels_it(db: Fixture) -> anyhow::Result<()> {
    let (endpoint, delivery, claim) = held(&db).await?;
    let other = db.submit(&endpoint).await?;
    let kept = db.claim_one(&endpoint).await?;
    cancel(&db, delivery).await?;
    let mut given_back = db.store.give_back(&[claim, kept]).await?;
    given_back.sort();
    let mut both = [delivery, other];
    both.sort();
    assert_eq!(given_back, both);
    assert_cancelled(&db, &endpoint, delivery).await?;
    assert_eq!(db.row(other).await?.state, 1, "the other is due again");
    assert!(db.store.give_back(&[claim]).await?.is_empty(), "once");
    Ok(())
}

async fn a_settled_delivery_says_its_state_and_a_strangers_is_missing(
    db: Fixture,
) -> anyhow::Result<()> {
    let (endpoint, delivery, claim) = held(&db).await?;
    let stranger = ApplicationKey::from_uuid(store::new_id::uuid_now());
    let owed = db.submit(&endpoint).await?;
    for delivery in [delivery, owed] {
        let answer = db.store.cancel_delivery(stranger, delivery).await?;
        assert_eq!(answer, Cancellation::Missing);
    }
    assert_eq!(db.row(owed).await?.state, 1);
    db.record(report(claim, Verdict::Delivered)).await?;
    assert_eq!(db.store.cancel_delivery(stranger, delivery).await?, Cancellation::Missing);
    let answer = cancel(&db, delivery).await?;
    assert_eq!(answer, Cancellation::NotCancellable(StateName::Delivered));
    let unknown = DeliveryId::from_uuid(store::new_id::uuid_now());
    assert_eq!(cancel(&db, unknown).await?, Cancellation::Missing);
    Ok(())
}

/// What a contestant of the races did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Cancelled(Cancellation),
    Claimed(usize),
    Recorded(Recording),
}

async fn of_a_claim_and_a_cancellation_at_once_the_second_sees_the_first(
    db: Fixture,
) -> anyhow::Result<()> {
    for _ in 0..10 {
        let endpoint = db.endpoint().await?;
        let delivery = db.submit(&endpoint).await?;
        let (store, key) = (Arc::clone(&db.store), endpoint.key);
        let done = race([true, false], move |_, cancels| {
            let store = Arc::clone(&store);
            async move {
                if cancels {
                    let answer = store.cancel_delivery(DEFAULT_APPLICATION_KEY, delivery).await?;
                    return Ok(Done::Cancelled(answer));
                }
                let request = ClaimRequest {
                    endpoints: &[key],
                    per_endpoint: 1,
                    total: 1,
                    worker: WORKER,
                    token: store::new_id::claim_token(),
                    sweep: true,
                };
                Ok(Done::Claimed(store.claim_due(&request).await?.claimed.len()))
            }
        })
        .await?;
        let expected = [
            [Done::Cancelled(Cancellation::Cancelled), Done::Claimed(0)],
            [Done::Cancelled(Cancellation::Requested), Done::Claimed(1)],
        ];
        assert!(expected.iter().any(|e| *e == done[..]), "{done:?}");
        let (counted, held) = db.in_flight(&endpoint).await?;
        assert_eq!(counted, held);
    }
    Ok(())
}

async fn of_a_report_and_a_cancellation_at_once_the_second_sees_the_first(
    db: Fixture,
) -> anyhow::Result<()> {
    for round in 0..10 {
        let (endpoint, delivery, claim) = held(&db).await?;
        let delivers = round % 2 == 0;
        let verdict = if delivers { Verdict::Delivered } else { retry(Duration::from_secs(5)) };
        let store = Arc::clone(&db.store);
        let done = race([true, false], move |_, cancels| {
            let store = Arc::clone(&store);
            async move {
                if cancels {
                    let answer = store.cancel_delivery(DEFAULT_APPLICATION_KEY, delivery).await?;
                    return Ok(Done::Cancelled(answer));
                }
                Ok(Done::Recorded(store.record_attempts(&[report(claim, verdict)]).await?[0]))
            }
        })
        .await?;
        let later = if delivers {
            Cancellation::NotCancellable(StateName::Delivered)
        } else {
            Cancellation::Cancelled
        };
        let recorded = Done::Recorded(Recording::Fenced(1));
        let expected = [Cancellation::Requested, later].map(|it| [Done::Cancelled(it), recorded]);
        assert!(expected.iter().any(|e| *e == done[..]), "{done:?}");
        assert_eq!(db.row(delivery).await?.state, if delivers { 4 } else { 5 });
        assert_eq!(db.in_flight(&endpoint).await?, (0, 0));
    }
    Ok(())
}

async fn what_was_called_off_and_lapsed_is_cancelled_by_upkeep(db: Fixture) -> anyhow::Result<()> {
    let (endpoint, delivery, claim) = held(&db).await?;
    let other = db.submit(&endpoint).await?;
    db.claim_one(&endpoint).await?;
    db.end_lease(other).await?;
    cancel(&db, delivery).await?;
    assert_eq!(db.store.cancel_requested(10).await?, 0, "its worker may still report");
    db.end_lease(delivery).await?;
    assert_eq!(db.store.cancel_requested(10).await?, 1);
    let row = db.row(delivery).await?;
    assert_eq!((row.state, row.reason), (5, Some(21)));
    assert_eq!(db.in_flight(&endpoint).await?, (1, 1), "one slot is free again");
    assert_eq!(db.row(other).await?.state, 2, "nobody called that one off");
    assert_eq!(db.record(report(claim, Verdict::Delivered)).await?, Recording::Late(1));
    assert_eq!(db.row(delivery).await?.state, 5);
    Ok(())
}
