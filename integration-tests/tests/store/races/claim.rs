//! Claims that meet other claims, locks, pauses and recorders.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::ensure;
use domain::delivery::Verdict;
use domain::id::{DeliveryId, EndpointKey};
use integration_tests::race::race;
use sqlx::AssertSqlSafe;
use store::Store;
use store::delivery::{ClaimBatch, ClaimRequest, HeldClaim, Standing};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use super::session::{run, until_it_waits};
use crate::fixture::{Fixture, WORKER, report, submission};

pub(super) async fn claim(
    store: &dyn Store,
    endpoints: &[EndpointKey],
    per_endpoint: u32,
) -> anyhow::Result<(ClaimBatch, Vec<HeldClaim>)> {
    let token = store::new_id::claim_token();
    let request =
        ClaimRequest { endpoints, per_endpoint, total: 1_000, worker: WORKER, token, sweep: false };
    let batch = store.claim_due(&request).await?;
    let held = batch.claimed.iter().map(|c| HeldClaim {
        endpoint: c.endpoint,
        delivery: c.delivery,
        token,
    });
    let held = held.collect();
    Ok((batch, held))
}

/// Makes endpoints with that many due deliveries each.
async fn backlog(
    db: &Fixture,
    endpoints: usize,
    each: usize,
    cap: u16,
) -> anyhow::Result<(Vec<EndpointKey>, HashSet<DeliveryId>)> {
    let (mut keys, mut owed) = (Vec::new(), HashSet::new());
    for _ in 0..endpoints {
        let endpoint = db.endpoint_with(|settings| settings.in_flight_max = cap).await?;
        let batch = (0..each)
            .map(|_| submission(&endpoint, None, b"{}"))
            .collect::<anyhow::Result<Vec<_>>>()?;
        owed.extend(batch.iter().map(|s| s.delivery));
        db.store.accept(&batch).await?;
        keys.push(endpoint.key);
    }
    Ok((keys, owed))
}

/// Each session has a store of its own, as a process has, and meets the endpoints in another order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn six_sessions_partition_six_thousand_deliveries_of_sixty_endpoints() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let (keys, owed) = backlog(&db, 60, 100, 1_000).await?;
    let mut sessions = Vec::new();
    for _ in 0..6 {
        sessions.push(db.another_store().await?);
    }
    let taken = race(sessions, move |place, store| {
        let mut keys = keys.clone();
        keys.rotate_left(place * 10);
        async move {
            let mut taken = Vec::new();
            let mut empty = 0;
            for part in (0..60).step_by(20).cycle() {
                let (batch, _) = claim(store.as_ref(), &keys[part..part + 20], 5).await?;
                empty = if batch.claimed.is_empty() { empty + 1 } else { 0 };
                taken.extend(batch.claimed.iter().map(|c| c.delivery));
                if empty == 3 {
                    break;
                }
            }
            Ok(taken)
        }
    })
    .await?;
    assert!(taken.iter().all(|of_one| !of_one.is_empty()), "every session had a part in it");
    let all: Vec<_> = taken.into_iter().flatten().collect();
    assert_eq!(all.len(), owed.len(), "none is taken twice");
    assert_eq!(all.into_iter().collect::<HashSet<_>>(), owed, "none is left");
    Ok(())
}

/// The store's sessions give up a wait after two seconds with an error: that there is none proves that
/// nothing was waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_another_session_holds_is_passed_over_at_once() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let held = db.submit(&endpoint).await?;
    let free = db.submit(&endpoint).await?;
    let mut session = db.session().await?;
    run(&mut session, "begin; set transaction isolation level read committed").await?;
    sqlx::query("select from fencepost.deliveries where id = $1 for update")
        .bind(held.as_uuid())
        .execute(&mut session)
        .await?;
    let (batch, _) = claim(db.store.as_ref(), &[endpoint.key], 10).await?;
    assert_eq!(batch.claimed.iter().map(|c| c.delivery).collect::<Vec<_>>(), [free]);
    run(&mut session, "rollback").await?;
    assert_eq!(db.claim_one(&endpoint).await?.delivery, held, "it is found again");
    Ok(())
}

/// Written as `IN (SELECT … LIMIT n)`, a nested loop claims all.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_takes_no_more_than_asked_under_forced_nested_loops() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let (keys, _) = backlog(&db, 20, 20, 1_000).await?;
    let mut session = db.session().await?;
    let name: String =
        sqlx::query_scalar("select current_database()").fetch_one(&mut session).await?;
    for setting in ["hashjoin", "mergejoin", "material", "memoize", "sort"] {
        let text = format!("alter database {name} set enable_{setting} = off");
        sqlx::query(AssertSqlSafe(text)).execute(&mut session).await?;
    }
    let store = db.another_store().await?;
    for left in (0..4).rev() {
        let (batch, _) = claim(store.as_ref(), &keys, 5).await?;
        assert_eq!(batch.claimed.len(), 100, "five of each of twenty");
        let due = if left == 0 { 0 } else { 20 };
        assert_eq!(db.due_endpoints(false).await?.len(), due);
    }
    Ok(())
}

/// The pause is committed while the claim waits for the schedule row: the row is read again then.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_that_commits_while_a_claim_waits_is_honoured() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let mut session = db.session().await?;
    run(
        &mut session,
        "begin; update fencepost.endpoint_schedule set paused_until = now() + interval '1 hour'",
    )
    .await?;
    let store = Arc::clone(&db.store);
    let claiming = tokio::spawn(async move { claim(store.as_ref(), &[endpoint.key], 10).await });
    until_it_waits(&mut db.session().await?, "postgres::delivery::claim_due").await?;
    run(&mut session, "commit").await?;
    let (batch, _) = claiming.await??;
    assert!(batch.claimed.is_empty());
    assert_eq!(batch.endpoints, [(endpoint.key, Standing::Closed)]);
    assert_eq!(db.row(delivery).await?.state, 1);
    Ok(())
}

/// The claim waits for the schedule row while a give-back commits: its snapshot does not see what was
/// given back, so it must not move the mark over it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_back_beside_a_waiting_claim_is_found_by_the_next_one() -> anyhow::Result<()>
{
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let old = db.submit(&endpoint).await?;
    db.make_due(old).await?;
    db.claim_one(&endpoint).await?;
    let young = db.submit(&endpoint).await?;
    let mut session = db.session().await?;
    // What the give-back statement writes, stopped before its commit.
    run(
        &mut session,
        "begin; update fencepost.deliveries set state = 1, claim_token = null where state = 2;
        update fencepost.endpoint_schedule set in_flight = in_flight - 1,
            low_water = '-infinity', given_back = given_back + 1",
    )
    .await?;
    let (store, key) = (Arc::clone(&db.store), endpoint.key);
    let claiming = tokio::spawn(async move { claim(store.as_ref(), &[key], 10).await });
    until_it_waits(&mut db.session().await?, "postgres::delivery::claim_due").await?;
    run(&mut session, "commit").await?;
    let (batch, _) = claiming.await??;
    assert_eq!(batch.claimed.iter().map(|c| c.delivery).collect::<Vec<_>>(), [young]);
    assert_eq!(db.due_endpoints(false).await?, [endpoint.key], "no sweep is needed");
    let held = db.claim_one(&endpoint).await?;
    assert_eq!(held.delivery, old);

    // The give-back itself counts, as the session did by hand.
    let counted = "select given_back from fencepost.endpoint_schedule";
    let before: i64 = sqlx::query_scalar(counted).fetch_one(&mut session).await?;
    db.store.give_back(&[held]).await?;
    let after: i64 = sqlx::query_scalar(counted).fetch_one(&mut session).await?;
    assert_eq!(after, before + 1);
    Ok(())
}

/// A clock that was set back leaves the marks in the future: they hide nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_mark_in_the_future_hides_nothing_and_comes_back() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let (lapsed, due) = (db.submit(&endpoint).await?, db.submit(&endpoint).await?);
    let (_, first) = claim(db.store.as_ref(), &[endpoint.key], 1).await?;
    assert_eq!(first.len(), 1);
    db.end_lease(first[0].delivery).await?;
    run(
        &mut db.session().await?,
        "update fencepost.endpoint_schedule set low_water = now() + interval '1 hour',
            lease_low = now() + interval '1 hour'",
    )
    .await?;
    assert_eq!(db.due_endpoints(false).await?, [endpoint.key]);
    let (batch, _) = claim(db.store.as_ref(), &[endpoint.key], 10).await?;
    let claimed: HashSet<_> = batch.claimed.iter().map(|c| c.delivery).collect();
    assert_eq!(claimed, HashSet::from([lapsed, due]));
    let ahead: i64 = sqlx::query_scalar(
        "select count(*) from fencepost.endpoint_schedule where low_water > now() or lease_low > now()",
    )
    .fetch_one(&mut db.session().await?)
    .await?;
    assert_eq!(ahead, 0);
    Ok(())
}

/// What lies below the mark is found by a sweep also while the endpoint is at its cap.
#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_finds_what_is_due_at_an_endpoint_at_its_cap() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let (keys, _) = backlog(&db, 1, 3, 2).await?;
    claim(db.store.as_ref(), &keys, 10).await?;
    assert!(db.due_endpoints(false).await?.is_empty());
    assert_eq!(db.due_endpoints(true).await?, keys);
    Ok(())
}

/// A cap that is lowered below what is in flight lets nothing in until enough is out.
#[tokio::test(flavor = "multi_thread")]
async fn a_cap_lowered_below_what_is_in_flight_admits_nothing_until_it_is_met() -> anyhow::Result<()>
{
    let db = Fixture::postgres().await?;
    let (keys, _) = backlog(&db, 1, 10, 4).await?;
    let (_, held) = claim(db.store.as_ref(), &keys, 10).await?;
    assert_eq!(held.len(), 4);
    run(&mut db.session().await?, "update fencepost.endpoint_schedule set cap = 2").await?;
    for (round, claim_of_one) in held.into_iter().enumerate() {
        let (batch, _) = claim(db.store.as_ref(), &keys, 10).await?;
        let room = usize::from(round == 3);
        assert_eq!(batch.claimed.len(), room, "after {round} reports");
        db.record(report(claim_of_one, Verdict::Delivered)).await?;
    }
    Ok(())
}

/// Eight claimers beside eight recorders on one endpoint with a cap of eight. In every snapshot the
/// counter is the number of claimed rows and not above the cap; both sides go on to the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_cap_holds_between_claimers_and_recorders_and_neither_starves() -> anyhow::Result<()> {
    const DELIVERIES: usize = 800;
    let db = Fixture::postgres().await?;
    let (keys, owed) = backlog(&db, 1, DELIVERIES, 8).await?;
    let done = CancellationToken::new();
    let sampler = tokio::spawn(sample_in_flight(db.session().await?, done.clone()));
    let (queue, claimed) = mpsc::unbounded_channel();
    let claimed = Arc::new(Mutex::new(claimed));
    let recorded = Arc::new(AtomicUsize::new(0));
    let store = Arc::clone(&db.store);
    let finished = done.clone();
    race(0..16, move |place, _| {
        let (store, keys, queue) = (Arc::clone(&store), keys.clone(), queue.clone());
        let (claimed, recorded, done) =
            (Arc::clone(&claimed), Arc::clone(&recorded), finished.clone());
        async move {
            if place < 8 {
                while !done.is_cancelled() {
                    let (_, held) = claim(store.as_ref(), &keys, 3).await?;
                    for one in held {
                        queue.send(one)?;
                    }
                }
                return Ok(());
            }
            let next = async || claimed.lock().await.recv().await;
            while let Some(Some(one)) = done.run_until_cancelled(next()).await {
                store.record_attempts(&[report(one, Verdict::Delivered)]).await?;
                if recorded.fetch_add(1, Ordering::SeqCst) + 1 == DELIVERIES {
                    done.cancel();
                }
            }
            Ok(())
        }
    })
    .await?;
    let samples = sampler.await??;
    ensure!(samples > 20, "only {samples} snapshots were taken");
    assert_eq!(db.count("settled_deliveries").await?, i64::try_from(owed.len())?);
    assert_eq!(db.count("deliveries").await?, 0);
    Ok(())
}

/// Reads counter, claimed rows and cap in one snapshot, again and again.
async fn sample_in_flight(
    mut session: sqlx::PgConnection,
    done: CancellationToken,
) -> anyhow::Result<usize> {
    let mut samples = 0;
    while !done.is_cancelled() {
        let (in_flight, claimed, cap): (i32, i64, i32) = sqlx::query_as(
            "select in_flight, (select count(*) from fencepost.deliveries where state = 2), cap
            from fencepost.endpoint_schedule",
        )
        .fetch_one(&mut session)
        .await?;
        ensure!(i64::from(in_flight) == claimed, "{in_flight} are counted, {claimed} are claimed");
        ensure!(in_flight <= cap, "{in_flight} in flight with a cap of {cap}");
        samples += 1;
    }
    Ok(samples)
}
