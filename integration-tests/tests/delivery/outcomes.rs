//! What a receiver's answers lead to, seen from the api.

use std::time::Duration;

use domain::delivery::retry::RetrySchedule;
use integration_tests::eventually;
use integration_tests::http::ApiClient;
use integration_tests::receiver::{Answer, Receiver, always, sequence};
use serde_json::Value;

use crate::history::assert_consistent;
use crate::service::{LONG, Service, submit};

/// Waits until the delivery is in that state, and answers it as the api shows it.
async fn wait_for_state(client: &ApiClient, id: &str, state: &str) -> anyhow::Result<Value> {
    let path = format!("/v1/deliveries/{id}");
    eventually(&format!("the delivery is {state}"), LONG, async || {
        let delivery: Value = client.get(&path).await?.json()?;
        anyhow::ensure!(delivery["state"] == state, "{delivery}");
        Ok(delivery)
    })
    .await
}

fn schedule(retries: usize) -> anyhow::Result<RetrySchedule> {
    Ok(RetrySchedule::new(vec![Duration::ZERO; retries])?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_tried_as_often_as_its_schedule_says_and_can_then_be_replayed()
-> anyhow::Result<()> {
    let service = Service::start().await?;
    let receiver = Receiver::start(sequence([403, 403, 403, 204]))?;
    let retries = schedule(2)?;
    let url = receiver.url("/");
    service.endpoint("strict", &url, |settings| settings.retry_schedule = retries).await?;
    let (_api, client) = service.api().await?;
    let _worker = service.worker("worker").await?;

    let accepted = submit(&client, "strict", "key", "{}").await?;
    let id = accepted.delivery_ids.concat();
    let failed = wait_for_state(&client, &id, "failed").await?;
    assert_eq!(failed["attempts"].as_array().map(Vec::len), Some(3));
    assert_eq!(receiver.requests().len(), 3, "not once more than the schedule allows");

    let replay = format!("/v1/deliveries/{id}/replay");
    let answer = client.post(&replay, &[], "").await?;
    assert_eq!(answer.status.as_u16(), 200);
    let delivered = wait_for_state(&client, &id, "delivered").await?;
    let numbers: Vec<_> = delivered["attempts"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|a| a["number"].as_u64())
        .collect();
    assert_eq!(numbers, [Some(1), Some(2), Some(3), Some(4)], "numbers go on");
    let ids = receiver.webhook_ids();
    assert_eq!(ids, [accepted.submission_id], "the webhook-id is the same on every attempt");

    let again = client.post(&replay, &[], "").await?;
    assert_eq!(again.status.as_u16(), 409);
    let problem: Value = again.json()?;
    assert_eq!(
        (&problem["code"], &problem["state"]),
        (&Value::from("delivery_not_replayable"), &Value::from("delivered"),)
    );
    assert_consistent(&service.database).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_410_disables_the_endpoint_and_its_other_deliveries_are_held() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let receiver = Receiver::start(always(410))?;
    service.endpoint("gone", &receiver.url("/"), |settings| settings.in_flight_max = 1).await?;
    let (_api, client) = service.api().await?;
    let first = submit(&client, "gone", "key-1", "{}").await?;
    let second = submit(&client, "gone", "key-2", "{}").await?;
    let _worker = service.worker("worker").await?;

    let id = first.delivery_ids.concat();
    let failed = wait_for_state(&client, &id, "failed").await?;
    assert_eq!(failed["reason"], "gone", "{failed}");
    eventually("the endpoint is disabled", LONG, async || {
        let endpoint: Value = client.get("/v1/endpoints/gone").await?.json()?;
        anyhow::ensure!(endpoint["enabled"] == false, "{endpoint}");
        Ok(())
    })
    .await?;
    // With one slot, the second can only have gone out between the report and the disabling.
    let third = submit(&client, "gone", "key-3", "{}").await?;
    let held = wait_for_state(&client, &third.delivery_ids.concat(), "pending").await?;
    assert_eq!(held["attempts"].as_array().map(Vec::len), Some(0));
    let replay = format!("/v1/deliveries/{id}/replay");
    let answer = client.post(&replay, &[], "").await?;
    assert_eq!(
        (answer.status.as_u16(), &answer.json::<Value>()?["code"]),
        (409, &Value::from("endpoint_disabled"),)
    );
    assert!(receiver.requests_of(&third.submission_id).is_empty());
    drop(second);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_or_stalled_or_redirected_request_is_retried_with_the_same_id() -> anyhow::Result<()>
{
    let service = Service::start().await?;
    let elsewhere = Receiver::start(always(204))?;
    let receiver = Receiver::start(sequence([
        Answer::reset(),
        Answer::close(),
        Answer::stall(),
        Answer::redirect(307, &elsewhere.url("/")),
        Answer::status(204),
    ]))?;
    let retries = schedule(9)?;
    let url = receiver.url("/");
    service
        .endpoint("rough", &url, |settings| {
            settings.retry_schedule = retries;
            settings.overload_floor = Duration::ZERO;
            // One request waits for it; the others must not meet it on a busy machine.
            settings.deadline = Duration::from_secs(3);
            settings.connect_deadline = Duration::from_secs(3);
        })
        .await?;
    let (_api, client) = service.api().await?;
    let _worker = service.worker("worker").await?;
    let accepted = submit(&client, "rough", "key", "{}").await?;
    let delivered = wait_for_state(&client, &accepted.delivery_ids.concat(), "delivered").await?;
    let outcomes: Vec<_> = delivered["attempts"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|attempt| attempt["outcome"].as_str().unwrap_or_default().to_owned())
        .collect();
    let expected = ["connection_closed", "connection_closed", "timed_out", "answered", "answered"];
    let requests = receiver.requests();
    assert_eq!(outcomes, expected, "{requests:?}");
    assert_eq!(requests.len(), expected.len(), "one request an attempt");
    assert_eq!(receiver.webhook_ids(), [accepted.submission_id]);
    assert!(elsewhere.requests().is_empty(), "a redirect is never followed");
    assert_consistent(&service.database).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_hanging_endpoint_does_not_hold_up_the_others() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let hanging = Receiver::start(|_, _| Answer::stall())?;
    let healthy = Receiver::start(always(204))?;
    service
        .endpoint("hanging", &hanging.url("/"), |settings| settings.in_flight_max = 1_000)
        .await?;
    service.endpoint("healthy", &healthy.url("/"), |_| {}).await?;
    let (_api, client) = service.api().await?;
    for number in 0..600 {
        submit(&client, "hanging", &format!("key-{number}"), "{}").await?;
    }
    let _worker = service.worker("worker").await?;
    hanging.wait_for_requests(16, LONG).await?;
    for number in 0..50 {
        submit(&client, "healthy", &format!("key-{number}"), "{}").await?;
    }
    // Below the 15 s that a hanging request takes: they did not wait for one.
    healthy.wait_for_webhook_ids(50, Duration::from_secs(14)).await?;
    Ok(())
}
