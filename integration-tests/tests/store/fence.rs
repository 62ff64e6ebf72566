//! Recording results under the fence (G2), and late ones as history (G3).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::delivery::{Failure, FailureReason, Outcome, Verdict};
use domain::id::DeliveryId;
use integration_tests::race::race;
use store::delivery::{Evidence, HeldClaim, Recording, Report};
use store::endpoint::Endpoint;

use crate::fixture::{Fixture, failure, report, retry};

on_both_stores! {
    a_worker_whose_lease_expired_cannot_change_a_reclaimed_delivery,
    the_owner_decides_in_either_order_of_results,
    both_results_at_the_same_instant_leave_one_verdict_and_two_numbers,
    a_late_result_of_a_settled_or_replayed_delivery_is_history,
    a_report_that_comes_twice_is_recorded_once,
    two_copies_of_one_report_at_the_same_instant_are_recorded_once,
    one_batch_takes_each_result_by_itself_in_the_order_of_the_input,
    a_result_of_an_unknown_delivery_is_gone,
    each_verdict_moves_the_delivery_as_it_says,
    on_a_deleted_endpoint_retry_and_failure_become_cancelled,
    whatever_a_receiver_answers_can_be_recorded,
}

/// A delivery that one worker lost and another holds.
async fn superseded(db: &Fixture) -> anyhow::Result<(Endpoint, DeliveryId, HeldClaim, HeldClaim)> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let late = db.claim_one(&endpoint).await?;
    db.end_lease(delivery).await?;
    let owner = db.claim_one(&endpoint).await?;
    Ok((endpoint, delivery, late, owner))
}

fn verdicts() -> [Verdict; 3] {
    [Verdict::Delivered, retry(Duration::from_secs(5)), failure()]
}

async fn a_worker_whose_lease_expired_cannot_change_a_reclaimed_delivery(
    db: Fixture,
) -> anyhow::Result<()> {
    for verdict in verdicts() {
        let (endpoint, delivery, late, _) = superseded(&db).await?;
        let before = db.row(delivery).await?;
        assert_eq!(db.record(report(late, verdict)).await?, Recording::Late(1));
        let after = db.row(delivery).await?;
        assert_eq!(after.attempts, 1);
        let unchanged = crate::fixture::Row { attempts: 0, ..after };
        assert_eq!(unchanged, before, "{verdict:?} changed more than the count");
        assert_eq!(db.in_flight(&endpoint).await?, (1, 1), "the slot is the owner's");
        assert_eq!(db.attempts(delivery).await?, [(1, true)]);
    }
    Ok(())
}

async fn the_owner_decides_in_either_order_of_results(db: Fixture) -> anyhow::Result<()> {
    for verdict in verdicts() {
        let (_, delivery, late, owner) = superseded(&db).await?;
        assert_eq!(db.record(report(late, verdict)).await?, Recording::Late(1));
        assert_eq!(db.record(report(owner, Verdict::Delivered)).await?, Recording::Fenced(2));
        assert_eq!(db.row(delivery).await?.state, 4);
        assert_eq!(db.attempts(delivery).await?, [(1, true), (2, false)]);

        let (_, delivery, late, owner) = superseded(&db).await?;
        let later = retry(Duration::from_secs(60));
        assert_eq!(db.record(report(owner, later)).await?, Recording::Fenced(1));
        let before = db.row(delivery).await?;
        assert_eq!(db.record(report(late, verdict)).await?, Recording::Late(2));
        let after = db.row(delivery).await?;
        assert_eq!(after, crate::fixture::Row { attempts: 2, ..before });
        assert_eq!(db.attempts(delivery).await?, [(1, false), (2, true)]);
    }
    Ok(())
}

async fn both_results_at_the_same_instant_leave_one_verdict_and_two_numbers(
    db: Fixture,
) -> anyhow::Result<()> {
    for _ in 0..10 {
        let (endpoint, delivery, late, owner) = superseded(&db).await?;
        let reports = [report(late, failure()), report(owner, Verdict::Delivered)];
        let store = Arc::clone(&db.store);
        let recordings = race(reports, move |_, report| {
            let store = Arc::clone(&store);
            async move { Ok(store.record_attempts(&[report]).await?[0]) }
        })
        .await?;
        let expected = [
            [Recording::Late(1), Recording::Fenced(2)],
            [Recording::Late(2), Recording::Fenced(1)],
        ];
        assert!(expected.iter().any(|e| *e == recordings[..]), "{recordings:?}");
        let row = db.row(delivery).await?;
        assert_eq!((row.state, row.attempts, row.cycle_attempts), (4, 2, 1));
        assert_eq!(db.in_flight(&endpoint).await?, (0, 0));
    }
    Ok(())
}

async fn a_late_result_of_a_settled_or_replayed_delivery_is_history(
    db: Fixture,
) -> anyhow::Result<()> {
    let (_, delivery, late, owner) = superseded(&db).await?;
    db.record(report(owner, Verdict::Delivered)).await?;
    assert_eq!(db.record(report(late, failure())).await?, Recording::Late(2));
    let row = db.row(delivery).await?;
    assert_eq!((row.state, row.attempts, row.settled), (4, 2, true));
    assert_eq!(db.attempts(delivery).await?, [(1, false), (2, true)]);

    let (_, delivery, late, owner) = superseded(&db).await?;
    db.record(report(owner, failure())).await?;
    let application = domain::application::DEFAULT_APPLICATION_KEY;
    db.store.replay_failed(application, delivery).await?;
    let before = db.row(delivery).await?;
    assert_eq!(db.record(report(late, Verdict::Delivered)).await?, Recording::Late(2));
    assert_eq!(db.row(delivery).await?, crate::fixture::Row { attempts: 2, ..before });
    Ok(())
}

async fn a_report_that_comes_twice_is_recorded_once(db: Fixture) -> anyhow::Result<()> {
    for verdict in verdicts() {
        let (endpoint, delivery, late, owner) = superseded(&db).await?;
        for claim in [late, owner] {
            let first = db.record(report(claim, verdict)).await?;
            let row = db.row(delivery).await?;
            let (Recording::Fenced(number) | Recording::Late(number)) = first else {
                anyhow::bail!("{first:?}")
            };
            let again = db.record(report(claim, verdict)).await?;
            assert_eq!(again, Recording::Repeated(number));
            assert_eq!(db.row(delivery).await?, row, "nothing is written");
        }
        assert_eq!(db.attempts(delivery).await?.len(), 2, "no phantom attempt");
        assert_eq!(db.in_flight(&endpoint).await?, (0, 0));
    }
    Ok(())
}

async fn two_copies_of_one_report_at_the_same_instant_are_recorded_once(
    db: Fixture,
) -> anyhow::Result<()> {
    for round in 0..10 {
        let (_, delivery, late, owner) = superseded(&db).await?;
        let claim = if round % 2 == 0 { late } else { owner };
        let copies = vec![report(claim, Verdict::Delivered); 4];
        let store = Arc::clone(&db.store);
        let recordings = race(copies, move |_, report| {
            let store = Arc::clone(&store);
            async move { Ok(store.record_attempts(&[report]).await?[0]) }
        })
        .await?;
        let repeated = recordings.iter().filter(|r| **r == Recording::Repeated(1)).count();
        assert_eq!(repeated, 3, "{recordings:?}");
        assert_eq!(db.attempts(delivery).await?.len(), 1);
    }
    Ok(())
}

async fn one_batch_takes_each_result_by_itself_in_the_order_of_the_input(
    db: Fixture,
) -> anyhow::Result<()> {
    let (endpoint, delivery, late, owner) = superseded(&db).await?;
    let other = db.submit(&endpoint).await?;
    let (token, _) = db.claim(&[&endpoint], 10).await?;
    let other_claim = HeldClaim { endpoint: endpoint.key, delivery: other, token };
    let batch = [
        report(late, Verdict::Delivered),
        report(other_claim, failure()),
        report(owner, retry(Duration::from_secs(5))),
        report(owner, retry(Duration::from_secs(5))),
    ];
    let recordings = db.store.record_attempts(&batch).await?;
    let expected =
        [Recording::Late(1), Recording::Fenced(1), Recording::Fenced(2), Recording::Repeated(2)];
    assert_eq!(recordings, expected);
    assert_eq!(db.row(delivery).await?.state, 1);
    assert_eq!(db.row(other).await?.state, 3);
    assert_eq!(db.in_flight(&endpoint).await?, (0, 0));
    Ok(())
}

async fn a_result_of_an_unknown_delivery_is_gone(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    db.submit(&endpoint).await?;
    let known = db.claim_one(&endpoint).await?;
    let delivery = DeliveryId::from_uuid(store::new_id::uuid_now());
    let unknown = HeldClaim { delivery, ..known };
    let batch = [report(unknown, Verdict::Delivered), report(known, Verdict::Delivered)];
    let recordings = db.store.record_attempts(&batch).await?;
    assert_eq!(recordings, [Recording::Gone, Recording::Fenced(1)]);
    assert_eq!(db.count("attempts").await?, 1);
    Ok(())
}

async fn each_verdict_moves_the_delivery_as_it_says(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let due_at = db.row(delivery).await?.due_at;
    let claim = db.claim_one(&endpoint).await?;
    db.record(report(claim, retry(Duration::from_secs(90)))).await?;
    let row = db.row(delivery).await?;
    assert_eq!((row.state, row.attempts, row.cycle_attempts), (1, 1, 1));
    let waits = row.due_at.zip(due_at).map(|(after, before)| (after - before) / 1_000_000);
    assert!(waits.is_some_and(|s| (90..100).contains(&s)), "due 90 s after the report: {waits:?}");
    assert_eq!((row.claim_token, db.in_flight(&endpoint).await?), (None, (0, 0)));

    db.make_due(delivery).await?;
    let claim = db.claim_one(&endpoint).await?;
    let reason = FailureReason::FinalStatus;
    db.record(report(claim, Verdict::Failed { reason })).await?;
    let detail = db.detail(delivery).await?.delivery;
    assert_eq!((detail.failure, detail.attempts), (Some(reason), 2));
    assert!(detail.replayable_until.is_some());

    let delivery = db.submit(&endpoint).await?;
    let claim = db.claim_one(&endpoint).await?;
    db.record(report(claim, Verdict::Delivered)).await?;
    let row = db.row(delivery).await?;
    assert_eq!((row.state, row.reason, row.settled), (4, None, true));
    assert_eq!(db.in_flight(&endpoint).await?, (0, 0));
    Ok(())
}

async fn on_a_deleted_endpoint_retry_and_failure_become_cancelled(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    for _ in 0..3 {
        db.submit(&endpoint).await?;
    }
    let (token, batch) = db.claim(&[&endpoint], 3).await?;
    db.delete(&endpoint).await?;
    for (claimed, verdict) in batch.claimed.iter().zip(verdicts()) {
        let claim = HeldClaim { endpoint: endpoint.key, delivery: claimed.delivery, token };
        assert_eq!(db.record(report(claim, verdict)).await?, Recording::Fenced(1));
        let row = db.row(claimed.delivery).await?;
        let expected =
            if verdict == Verdict::Delivered { (4, None, true) } else { (5, Some(22), true) };
        assert_eq!((row.state, row.reason, row.settled), expected, "{verdict:?}");
    }
    Ok(())
}

async fn whatever_a_receiver_answers_can_be_recorded(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint_with(|settings| settings.circuit_breaker = false).await?;
    let every_byte: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let hostile = Evidence {
        url: "https://receiver.example.com/\0".to_owned(),
        response: Bytes::from(every_byte),
        response_truncated: false,
        location: Some("\0\u{202e}<script>".repeat(1_000)),
        detail: Some("\0".to_owned()),
    }
    .bounded();
    let outcomes = Failure::ALL.into_iter().map(Outcome::Unanswered).chain(
        [100, 200, 299, 418, 599, 999]
            .map(|status| Outcome::Answered { status, retry_after: None }),
    );
    for outcome in outcomes {
        let delivery = db.submit(&endpoint).await?;
        let claim = db.claim_one(&endpoint).await?;
        let mut report = report(claim, failure());
        report.outcome = outcome.clone();
        report.evidence = hostile.clone();
        report.duration = Duration::MAX;
        assert_eq!(db.record(report).await?, Recording::Fenced(1), "{outcome:?}");
        let attempts = db.detail(delivery).await?.attempts;
        assert_eq!(attempts[0].outcome, outcome.as_str());
        assert_eq!(attempts[0].evidence, hostile);
    }
    Ok(())
}

#[test]
fn reports_are_what_the_worker_sends() {
    // A report needs nothing that the worker could not know: it holds no row.
    fn assert_plain<T: Clone + Send + 'static>() {}
    assert_plain::<Report>();
}
