//! Behind a transaction pooler nothing may count on a session: everything works, by polling.

use anyhow::ensure;
use domain::endpoint::SettingsDraft;
use integration_tests::postgres::TransactionPooler;
use integration_tests::process::{Api, Worker};
use integration_tests::receiver::{Receiver, always, sequence};
use integration_tests::{api_binary, eventually, worker_binary};
use reqwest::StatusCode;
use serde_json::Value;

use crate::history::{assert_consistent, wait_until_nothing_is_owed};
use crate::service::{LONG, Service, submit};

const SUBMISSIONS: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn behind_a_transaction_pooler_all_is_delivered_by_polling_and_the_worker_says_so()
-> anyhow::Result<()> {
    let service = Service::start().await?;
    let pooler = TransactionPooler::start(service.database.url()).await?;
    let settings = service.settings.clone().with("DATABASE_URL", pooler.url());
    // Refused once, then taken.
    let receiver = Receiver::start(sequence([500, 204]))?;
    let retries = domain::delivery::retry::RetrySchedule::new(vec![std::time::Duration::ZERO; 3])?;
    // The first attempts of all fail in a row, which an endpoint's circuit breaker would hold back.
    let settings_of_it = |draft: &mut SettingsDraft| {
        (draft.retry_schedule, draft.circuit_breaker) = (retries, false);
    };
    service.endpoint("a", &receiver.url("/"), settings_of_it).await?;
    let api = Api::start(api_binary!(), &settings).await?;
    let client = api.client(service.key())?;
    let worker = Worker::start(worker_binary!(), "worker", &settings).await?;

    let mut last = None;
    for number in 0..SUBMISSIONS {
        last = Some(submit(&client, "a", &format!("key-{number}"), "{}").await?);
    }
    receiver.wait_for_requests(2 * SUBMISSIONS, LONG).await?;
    wait_until_nothing_is_owed(&service.database, LONG).await?;
    assert_consistent(&service.database).await?;

    // What a key stands for, a delivery with its attempts, a replay that is refused.
    let last = last.as_ref().map(|accepted| accepted.delivery_ids.concat()).unwrap_or_default();
    let again = submit(&client, "a", &format!("key-{}", SUBMISSIONS - 1), "{}").await?;
    assert_eq!(again.delivery_ids.concat(), last);
    let shown: Value = client.get(&format!("/v1/deliveries/{last}")).await?.json()?;
    assert_eq!(
        (&shown["state"], &shown["attempt_count"]),
        (&"delivered".into(), &2.into()),
        "{shown}"
    );
    let replay = client.post(&format!("/v1/deliveries/{last}/replay"), &[], "").await?;
    assert_eq!(replay.status, StatusCode::CONFLICT);

    eventually("the worker says that it polls", LONG, async || {
        let told = worker.process.lines().iter().filter(|it| it.contains("by polling")).count();
        ensure!(told == 1, "{told} times");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn past_the_pooler_a_worker_is_woken() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let pooler = TransactionPooler::start(service.database.url()).await?;
    let settings = service
        .settings
        .clone()
        .with("DATABASE_URL", pooler.url())
        .with("FENCEPOST_LISTEN_DATABASE_URL", service.database.url())
        .with("FENCEPOST_WORKER_POLL_INTERVAL", "1h")
        .with("FENCEPOST_WORKER_SWEEP_INTERVAL", "1h");
    let receiver = Receiver::start(always(204))?;
    service.endpoint("a", &receiver.url("/"), |_| {}).await?;
    let api = Api::start(api_binary!(), &settings).await?;
    let client = api.client(service.key())?;
    let _worker = Worker::start(worker_binary!(), "worker", &settings).await?;
    for number in 1..=3 {
        submit(&client, "a", &format!("key-{number}"), "{}").await?;
        receiver.wait_for_requests(number, LONG).await?;
    }
    Ok(())
}
