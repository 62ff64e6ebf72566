//! Workers that die again and again, and deliveries that outlive them.

use anyhow::ensure;
use integration_tests::eventually;
use integration_tests::receiver::{Answer, Hold, Receiver, always};
use sqlx::PgConnection;

use crate::history::{DELIVERED, assert_consistent, settled, wait_until_nothing_is_owed};
use crate::service::{LONG, Service, submit};

const INNOCENT: i64 = 5;
const CRASHES: i32 = 4;

/// Rows are aged, so the marks that have passed them come back.
const MARKS: &str =
    "update fencepost.endpoint_schedule set low_water = '-infinity', lease_low = '-infinity'";

async fn run(connection: &mut PgConnection, text: &'static str) -> anyhow::Result<()> {
    sqlx::raw_sql(text).execute(connection).await?;
    Ok(())
}

/// Makes due what a claim has parked for the delay of the retry schedule.
async fn end_waits(connection: &mut PgConnection) -> anyhow::Result<()> {
    run(connection, "update fencepost.deliveries set due_at = now() where state = 1").await?;
    run(connection, MARKS).await
}

/// Each worker of a broken deploy takes all that is there and dies with it. Nobody reports, nobody
/// fails: beyond ten lapses within a day too, all is delivered by the first worker that lives.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_that_crashes_again_and_again_fails_no_delivery() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let hold = Hold::new();
    let receiver = Receiver::start(always(Answer::status(204).hold(&hold)))?;
    service.endpoint("innocent", &receiver.url("/"), |_| {}).await?;
    let (_api, client) = service.api().await?;
    for number in 0..INNOCENT {
        submit(&client, "innocent", &format!("key-{number}"), "{}").await?;
    }
    let mut connection = service.database.connect().await?;
    for crash in 0..CRASHES {
        let name = format!("crash-{crash}");
        let mut worker = service.worker(&name).await?;
        eventually("the worker holds all", LONG, async || {
            end_waits(&mut connection).await?;
            let held: i64 = sqlx::query_scalar(
                "select count(*) from fencepost.deliveries where state = 2 and claimed_by = $1",
            )
            .bind(&name)
            .fetch_one(&mut connection)
            .await?;
            ensure!(held == INNOCENT, "it holds {held}");
            Ok(())
        })
        .await?;
        worker.process.kill().await?;
        // Its lease ends, as three more did meanwhile.
        run(
            &mut connection,
            "update fencepost.deliveries set claim_expires_at = now() - interval '1 ms',
                lapses = lapses + 3, lapse_since = coalesce(lapse_since, now())",
        )
        .await?;
    }
    let lapses: i32 = sqlx::query_scalar("select min(lapses) from fencepost.deliveries")
        .fetch_one(&mut connection)
        .await?;
    ensure!(lapses >= 12, "only {lapses} lapses");

    hold.release_all();
    let _survivor = service.worker("survivor").await?;
    eventually("all are delivered", LONG, async || {
        end_waits(&mut connection).await?;
        let delivered = settled(&service.database, DELIVERED).await?;
        ensure!(delivered == INNOCENT, "{delivered} are");
        Ok(())
    })
    .await?;
    assert_consistent(&service.database).await
}

/// Ten lapses in a row and a day are the rule, and what a slow holder says afterwards still counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_poisonous_delivery_is_abandoned_by_the_rule_and_its_late_success_delivers_it()
-> anyhow::Result<()> {
    let service = Service::start().await?;
    let hold = Hold::new();
    let receiver = Receiver::start(always(Answer::status(204).hold(&hold)))?;
    let longest = std::time::Duration::from_secs(30);
    service.endpoint("poisonous", &receiver.url("/"), |draft| draft.deadline = longest).await?;
    let (_api, client) = service.api().await?;
    let _worker = service.worker("worker").await?;
    submit(&client, "poisonous", "key", "{}").await?;
    receiver.wait_for_requests(1, LONG).await?;

    let mut connection = service.database.connect().await?;
    run(
        &mut connection,
        "update fencepost.deliveries set claim_expires_at = now() - interval '1 ms',
            lapses = 9, lapse_since = now() - interval '25 hours'",
    )
    .await?;
    run(&mut connection, MARKS).await?;
    let in_state = async |connection: &mut PgConnection, state: i16| {
        let found: i64 = sqlx::query_scalar(
            "select count(*) from fencepost.deliveries where state = $1 and reason = 4",
        )
        .bind(state)
        .fetch_one(connection)
        .await?;
        ensure!(found == 1, "{found} are in state {state}");
        anyhow::Ok(())
    };
    eventually("it is abandoned", LONG, async || in_state(&mut connection, 3).await).await?;

    hold.release_all();
    wait_until_nothing_is_owed(&service.database, LONG).await?;
    eventually("it is delivered after all", LONG, async || {
        let delivered = settled(&service.database, DELIVERED).await?;
        ensure!(delivered == 1, "{delivered} are");
        Ok(())
    })
    .await?;
    assert_eq!(receiver.requests().len(), 1, "nobody sent it again");
    assert_consistent(&service.database).await
}
