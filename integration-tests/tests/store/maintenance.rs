//! Upkeep: each operation is right by itself, whoever calls it and beside whatever.

mod on_postgres;

use std::sync::Arc;

use anyhow::Context as _;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::Verdict;
use domain::endpoint::DisabledCause;
use domain::id::DeliveryId;
use integration_tests::race::race;
use store::delivery::{HeldClaim, Recording, Replay};
use store::maintenance::Recount;
use store::submission::Acceptance;

use crate::fixture::{Fixture, report, submission};

on_both_stores! {
    a_recount_mends_slots_and_goes_through_all_endpoints,
    a_recount_makes_a_schedule_row_that_is_missing,
    nothing_stays_owed_to_a_deleted_endpoint,
    a_batch_takes_no_more_than_it_may_and_the_next_goes_on,
    what_a_closed_endpoint_held_for_the_retention_time_fails_and_can_be_replayed,
    what_lapsed_at_a_closed_endpoint_fails_as_well_and_frees_its_slot,
    what_an_open_endpoint_owes_is_never_held_too_long,
    a_failed_delivery_expires_when_its_time_is_over,
    of_an_expiry_and_a_replay_at_once_the_clock_decides,
    keys_whose_time_is_over_are_forgotten_and_no_others,
    two_leaders_at_once_do_everything_once,
}

async fn a_recount_mends_slots_and_goes_through_all_endpoints(db: Fixture) -> anyhow::Result<()> {
    let endpoints = [db.endpoint().await?, db.endpoint().await?, db.endpoint().await?];
    db.submit(&endpoints[1]).await?;
    db.claim_one(&endpoints[1]).await?;
    for endpoint in &endpoints {
        let text = "update {}endpoint_schedule set in_flight = 7 where endpoint = $1";
        db.run(text, endpoint.key.as_uuid()).await?;
    }
    let first = db.store.recount_slots(None, 2).await?;
    let last = Some(endpoints.iter().map(|it| it.key).max()).filter(|_| first.next.is_some());
    assert_eq!((first.mended, first.made, last.is_some()), (2, 0, true));
    let second = db.store.recount_slots(first.next, 2).await?;
    assert_eq!(second, Recount { mended: 1, made: 0, next: None });
    for (endpoint, count) in endpoints.iter().zip([0, 1, 0]) {
        assert_eq!(db.in_flight(endpoint).await?, (count, count));
    }
    assert_eq!(db.store.recount_slots(None, 10).await?.mended, 0, "nothing is left to mend");
    Ok(())
}

async fn a_recount_makes_a_schedule_row_that_is_missing(db: Fixture) -> anyhow::Result<()> {
    let (open, disabled) = (db.endpoint().await?, db.endpoint().await?);
    db.store.disable_endpoint(disabled.key, disabled.version, DisabledCause::Operator).await?;
    for endpoint in [&open, &disabled] {
        let text = "delete from {}endpoint_schedule where endpoint = $1";
        db.run(text, endpoint.key.as_uuid()).await?;
        db.submit(endpoint).await?;
    }
    assert!(db.due_endpoints(true).await?.is_empty(), "without it nobody claims");
    assert_eq!(db.store.recount_slots(None, 10).await?.made, 2);
    assert_eq!(db.due_endpoints(true).await?, [open.key], "the disabled one is still disabled");
    db.claim_one(&open).await?;
    Ok(())
}

async fn nothing_stays_owed_to_a_deleted_endpoint(db: Fixture) -> anyhow::Result<()> {
    let (endpoint, other) = (db.endpoint().await?, db.endpoint().await?);
    let failed = db.failed(&endpoint).await?;
    let lapsed = db.submit(&endpoint).await?;
    db.claim_one(&endpoint).await?;
    db.end_lease(lapsed).await?;
    let pending = db.submit(&endpoint).await?;
    let (held, kept) = (db.submit(&endpoint).await?, db.submit(&other).await?);
    // The lapsed one is taken over; it and one other are held by workers now.
    let (token, batch) = db.claim(&[&endpoint], 2).await?;
    let claimed: Vec<DeliveryId> = batch.claimed.iter().map(|it| it.delivery).collect();
    assert_eq!(claimed.len(), 2);
    db.end_lease(lapsed).await?;
    db.delete(&endpoint).await?;

    assert_eq!(db.store.cancel_deleted(10).await?, 3);
    let live = *claimed.iter().find(|it| **it != lapsed).context("another")?;
    for delivery in [failed, lapsed, pending, held].into_iter().filter(|it| *it != live) {
        let row = db.row(delivery).await?;
        assert_eq!((row.state, row.reason, row.settled), (5, Some(22), true));
    }
    assert_eq!(db.row(live).await?.state, 2, "its worker may still report");
    assert_eq!(db.in_flight(&endpoint).await?, (1, 1));
    db.end_lease(live).await?;
    assert_eq!(db.store.cancel_deleted(10).await?, 1);
    assert_eq!(db.in_flight(&endpoint).await?, (0, 0));
    let claim = store::delivery::HeldClaim { endpoint: endpoint.key, delivery: live, token };
    assert_eq!(db.record(report(claim, Verdict::Delivered)).await?, Recording::Late(1));
    assert_eq!(db.row(kept).await?.state, 1, "other endpoints keep what they owe");
    Ok(())
}

/// Case C093.
async fn a_batch_takes_no_more_than_it_may_and_the_next_goes_on(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    for _ in 0..5 {
        db.submit(&endpoint).await?;
    }
    db.delete(&endpoint).await?;
    let mut counts = Vec::new();
    for _ in 0..4 {
        counts.push(db.store.cancel_deleted(2).await?);
    }
    assert_eq!(counts, [2, 2, 1, 0]);
    assert_eq!((db.count("deliveries").await?, db.count("settled_deliveries").await?), (0, 5));
    Ok(())
}

async fn what_a_closed_endpoint_held_for_the_retention_time_fails_and_can_be_replayed(
    db: Fixture,
) -> anyhow::Result<()> {
    let (paused, disabled) = (db.endpoint().await?, db.endpoint().await?);
    db.pause(&paused, true).await?;
    db.store.disable_endpoint(disabled.key, disabled.version, DisabledCause::Operator).await?;
    for endpoint in [&paused, &disabled] {
        let (held, fresh) = (db.submit(endpoint).await?, db.submit(endpoint).await?);
        db.make_due(held).await?;
        assert_eq!(db.store.fail_held(10).await?, 1);
        let row = db.row(held).await?;
        assert_eq!((row.state, row.reason), (3, Some(5)));
        assert!(row.due_at > db.row(fresh).await?.due_at, "it can be replayed for a while");
        assert_eq!(db.row(fresh).await?.state, 1, "what came later is still held");
    }
    db.pause(&paused, false).await?;
    let failed = db.store.list_deliveries(store::delivery::DeliveryFilter {
        state: Some(domain::delivery::StateName::Failed),
        endpoint: Some(paused.key),
        ..all()
    });
    let [failed] = &failed.await?[..] else { anyhow::bail!("one failed") };
    let replay = db.store.replay_failed(DEFAULT_APPLICATION_KEY, failed.id).await?;
    assert_eq!(replay, Replay::Replayed);
    Ok(())
}

/// Nobody claims there, so nobody else would ever take over what a dead worker held.
async fn what_lapsed_at_a_closed_endpoint_fails_as_well_and_frees_its_slot(
    db: Fixture,
) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let (lapsed, recent) = (db.submit(&endpoint).await?, db.submit(&endpoint).await?);
    let (token, _) = db.claim(&[&endpoint], 10).await?;
    db.end_lease(recent).await?;
    db.make_due(lapsed).await?;
    db.run("update {}deliveries set claim_expires_at = due_at where id = $1", lapsed.as_uuid())
        .await?;
    db.pause(&endpoint, true).await?;
    assert_eq!(db.store.fail_held(10).await?, 1);
    let row = db.row(lapsed).await?;
    assert_eq!((row.state, row.reason, row.claim_token), (3, Some(5), Some(token)));
    assert_eq!(db.row(recent).await?.state, 2, "its lease ended a little ago");
    assert_eq!(db.in_flight(&endpoint).await?, (1, 1));
    let claim = HeldClaim { endpoint: endpoint.key, delivery: lapsed, token };
    let recording = db.record(report(claim, Verdict::Delivered)).await?;
    assert_eq!(recording, Recording::Fenced(1), "its worker was only slow");
    assert_eq!(db.row(lapsed).await?.state, 4);
    assert_eq!(db.in_flight(&endpoint).await?, (1, 1), "the slot is freed once");
    Ok(())
}

fn all() -> store::delivery::DeliveryFilter {
    store::delivery::DeliveryFilter {
        application: DEFAULT_APPLICATION_KEY,
        endpoint: None,
        state: None,
        created: store::CreatedWindow::default(),
        page: store::Page { limit: 100, before: None },
    }
}

async fn what_an_open_endpoint_owes_is_never_held_too_long(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    db.make_due(delivery).await?;
    assert_eq!(db.store.fail_held(10).await?, 0);
    assert_eq!(db.row(delivery).await?.state, 1, "it waits for its turn");
    Ok(())
}

async fn a_failed_delivery_expires_when_its_time_is_over(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    let (over, young) = (db.failed(&endpoint).await?, db.failed(&endpoint).await?);
    db.make_due(over).await?;
    assert_eq!(db.store.expire_failed(10).await?, 1);
    let row = db.row(over).await?;
    assert_eq!((row.state, row.reason, row.attempts, row.settled), (6, Some(1), 1, true));
    assert_eq!(db.row(young).await?.state, 3);
    let replay = db.store.replay_failed(DEFAULT_APPLICATION_KEY, over).await?;
    assert_eq!(replay, Replay::Expired);
    assert_eq!(db.attempts(over).await?, [(1, false)], "history stays");
    Ok(())
}

async fn of_an_expiry_and_a_replay_at_once_the_clock_decides(db: Fixture) -> anyhow::Result<()> {
    for round in 0..10 {
        let endpoint = db.endpoint().await?;
        let delivery = db.failed(&endpoint).await?;
        let is_over = round % 2 == 0;
        if is_over {
            db.make_due(delivery).await?;
        }
        let store = Arc::clone(&db.store);
        let answers = race([true, false], move |_, expires| {
            let store = Arc::clone(&store);
            async move {
                if expires {
                    store.expire_failed(10).await?;
                    return Ok(None);
                }
                Ok(Some(store.replay_failed(DEFAULT_APPLICATION_KEY, delivery).await?))
            }
        })
        .await?;
        let expected = if is_over { Replay::Expired } else { Replay::Replayed };
        assert_eq!(answers[1], Some(expected));
        assert_eq!(db.row(delivery).await?.state, if is_over { 6 } else { 1 });
    }
    Ok(())
}

async fn keys_whose_time_is_over_are_forgotten_and_no_others(db: Fixture) -> anyhow::Result<()> {
    let endpoint = db.endpoint().await?;
    for key in ["a", "b", "c", "d"] {
        db.accept_one(&submission(&endpoint, Some(key), b"{}")?).await?;
    }
    for key in ["a", "b", "c"] {
        db.expire_key(key).await?;
    }
    assert_eq!(db.store.expire_keys(2).await?, 2);
    assert_eq!(db.store.expire_keys(2).await?, 1);
    assert_eq!(db.store.expire_keys(2).await?, 0);
    let kept = db.accept_one(&submission(&endpoint, Some("d"), b"{}")?).await?;
    assert!(matches!(kept, Acceptance::Replayed(_)), "{kept:?}");
    Ok(())
}

async fn two_leaders_at_once_do_everything_once(db: Fixture) -> anyhow::Result<()> {
    let (deleted, open) = (db.endpoint().await?, db.endpoint().await?);
    for _ in 0..20 {
        db.submit(&deleted).await?;
    }
    let (_, batch) = db.claim(&[&deleted], 5).await?;
    for claimed in &batch.claimed {
        db.end_lease(claimed.delivery).await?;
    }
    for _ in 0..10 {
        let failed = db.failed(&open).await?;
        db.make_due(failed).await?;
    }
    db.delete(&deleted).await?;
    let store = Arc::clone(&db.store);
    let counts = race(0..4, move |_, _| {
        let store = Arc::clone(&store);
        async move {
            let mut counts = (0, 0, 0);
            for _ in 0..30 {
                counts.0 += store.cancel_deleted(3).await?;
                counts.1 += store.expire_failed(3).await?;
                counts.2 += store.recount_slots(None, 10).await?.mended;
            }
            Ok(counts)
        }
    })
    .await?;
    let sum = counts.iter().fold((0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
    assert_eq!(sum, (20, 10, 0));
    assert_eq!(db.in_flight(&deleted).await?, (0, 0));
    assert_eq!((db.count("deliveries").await?, db.count("settled_deliveries").await?), (0, 30));
    Ok(())
}
