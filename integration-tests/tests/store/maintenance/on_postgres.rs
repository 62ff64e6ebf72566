//! Upkeep beside sessions that hold what it wants.

use std::sync::Arc;
use std::time::Duration;

use domain::id::DeliveryId;
use sqlx::{Connection as _, Executor as _};
use store::endpoint::Endpoint;

use crate::fixture::Fixture;

/// Until a session of the store waits for a lock.
async fn until_something_waits(db: &Fixture) -> anyhow::Result<()> {
    let mut connection = db.connection().await?;
    integration_tests::eventually("a statement waits", Duration::from_secs(10), async || {
        let waiting: i64 = sqlx::query_scalar(
            "select count(*) from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'",
        )
        .fetch_one(&mut connection)
        .await?;
        anyhow::ensure!(waiting > 0);
        Ok(())
    })
    .await
}

/// Counting in the statement that waits would write the count from before the claim.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_recount_beside_an_open_claim_counts_what_the_claim_took() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let delivery = db.submit(&endpoint).await?;
    let mut claimer = db.connection().await?;
    let mut claim = claimer.begin().await?;
    sqlx::query("update fencepost.endpoint_schedule set in_flight = 1 where endpoint = $1")
        .bind(endpoint.key.as_uuid())
        .execute(&mut *claim)
        .await?;
    sqlx::query(
        "update fencepost.deliveries set state = 2, claim_token = id,
            claim_expires_at = statement_timestamp() + interval '1 minute' where id = $1",
    )
    .bind(delivery.as_uuid())
    .execute(&mut *claim)
    .await?;
    let store = Arc::clone(&db.store);
    let recounting = tokio::spawn(async move { store.recount_slots(None, 10).await });
    until_something_waits(&db).await?;
    claim.commit().await?;
    assert_eq!(recounting.await??.mended, 0);
    assert_eq!(db.in_flight(&endpoint).await?, (1, 1));
    Ok(())
}

/// A caller that goes away must not leave the locks of its transaction behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_recount_whose_caller_goes_away_leaves_nothing_locked() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    db.submit(&endpoint).await?;
    let mut blocker = db.connection().await?;
    let mut blocking = blocker.begin().await?;
    blocking.execute("select from fencepost.endpoint_schedule for update").await?;
    let store = Arc::clone(&db.store);
    let recounting = tokio::spawn(async move { store.recount_slots(None, 10).await });
    until_something_waits(&db).await?;
    recounting.abort();
    assert!(recounting.await.is_err_and(|error| error.is_cancelled()));
    blocking.rollback().await?;
    db.claim_one(&endpoint).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_commits_after_its_endpoint_was_deleted_is_taken_by_the_next_sweep()
-> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let endpoint = db.endpoint().await?;
    let mut submitter = db.connection().await?;
    let mut open = submitter.begin().await?;
    let delivery = store::new_id::uuid_now();
    sqlx::query(
        "insert into fencepost.deliveries (endpoint, id, submission, due_at, payload_bytes, state)
        select e.key, $2, $2, statement_timestamp(), 0, 1
        from fencepost.endpoints e where e.key = $1 and e.deleted_at is null",
    )
    .bind(endpoint.key.as_uuid())
    .bind(delivery)
    .execute(&mut *open)
    .await?;
    db.delete(&endpoint).await?;
    assert_eq!(db.store.cancel_deleted(10).await?, 0);
    open.commit().await?;
    assert_eq!(db.store.cancel_deleted(10).await?, 1);
    assert_eq!(db.row(DeliveryId::from_uuid(delivery)).await?.reason, Some(22));
    Ok(())
}

/// Case C056.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_full_batch_of_rows_that_others_hold_does_not_hide_the_rest() -> anyhow::Result<()> {
    let db = Fixture::postgres().await?;
    let (first, second) = (db.endpoint().await?, db.endpoint().await?);
    let failed: [DeliveryId; 3] =
        [db.failed(&first).await?, db.failed(&first).await?, db.failed(&second).await?];
    for delivery in failed {
        db.make_due(delivery).await?;
    }
    let mut holder = db.connection().await?;
    let mut holding = holder.begin().await?;
    sqlx::query("select from fencepost.deliveries where endpoint = $1 for update")
        .bind(first.key.as_uuid())
        .execute(&mut *holding)
        .await?;
    assert_eq!(db.store.expire_failed(2).await?, 1);
    assert_eq!(db.row(failed[2]).await?.state, 6);

    let owed = [submit_three(&db, &first).await?, submit_three(&db, &second).await?];
    sqlx::query("select from fencepost.deliveries where endpoint = $1 for update")
        .bind(first.key.as_uuid())
        .execute(&mut *holding)
        .await?;
    db.delete(&first).await?;
    db.delete(&second).await?;
    assert_eq!(db.store.cancel_deleted(2).await?, 2);
    assert_eq!(db.store.cancel_deleted(2).await?, 1);
    for delivery in owed[1] {
        assert_eq!(db.row(delivery).await?.state, 5);
    }
    holding.rollback().await?;
    assert_eq!(db.store.cancel_deleted(10).await?, 5);
    Ok(())
}

async fn submit_three(db: &Fixture, endpoint: &Endpoint) -> anyhow::Result<[DeliveryId; 3]> {
    Ok([db.submit(endpoint).await?, db.submit(endpoint).await?, db.submit(endpoint).await?])
}
