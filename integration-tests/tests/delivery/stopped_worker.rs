//! SIGTERM: nothing more is claimed, what is unsent is given back, what is sent is awaited.

use integration_tests::receiver::{Answer, Hold, Receiver, always};

use crate::history::{assert_consistent, wait_until_nothing_is_owed};
use crate::service::{LONG, Service, submit};

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_asked_to_stop_finishes_what_it_has_sent_and_leaves_no_lapse()
-> anyhow::Result<()> {
    let service = Service::start().await?;
    let hold = Hold::new();
    let answer = Answer::status(204).hold(&hold);
    let receiver = Receiver::start(always(answer))?;
    service.endpoint("slow", &receiver.url("/"), |settings| settings.in_flight_max = 4).await?;
    let (_api, client) = service.api().await?;
    let mut worker = service.worker("first").await?;
    for number in 0..10 {
        submit(&client, "slow", &format!("key-{number}"), "{}").await?;
    }
    receiver.wait_for_requests(4, LONG).await?;
    worker.process.terminate().await?;
    hold.release_all();
    let status = worker.process.wait_exit(LONG).await?;
    assert!(status.success(), "{status}");

    // Nothing is left under a lease: what it sent is recorded, the rest is owed as before.
    let mut connection = service.database.connect().await?;
    let (pending, claimed, lapses): (i64, i64, i64) = sqlx::query_as(
        "select count(*) filter (where state = 1), count(*) filter (where state = 2),
            coalesce(sum(lapses), 0)::bigint from fencepost.deliveries",
    )
    .fetch_one(&mut connection)
    .await?;
    assert_eq!((claimed, lapses), (0, 0));
    let sent = i64::try_from(receiver.requests().len())?;
    assert_eq!(pending, 10 - sent, "what was sent is recorded");
    assert_consistent(&service.database).await?;

    let _second = service.worker("second").await?;
    wait_until_nothing_is_owed(&service.database, LONG).await?;
    assert_eq!(receiver.requests().len(), 10, "each came once");
    assert_consistent(&service.database).await
}
