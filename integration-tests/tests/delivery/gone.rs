//! A receiver that answers 410 while its owner moves elsewhere.

use anyhow::ensure;
use integration_tests::eventually;
use integration_tests::receiver::{Answer, Hold, Receiver};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::history::assert_consistent;
use crate::service::{LONG, Service, submit};

/// The 410 is under way when the URL is changed: it fails its delivery and disables nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_gone_answer_of_the_old_url_does_not_disable_the_new_one() -> anyhow::Result<()> {
    let service = Service::start().await?;
    let hold = Hold::new();
    let held = hold.clone();
    let receiver = Receiver::start(move |request, _| match request.path() {
        "/old" => Answer::status(410).hold(&held),
        _ => Answer::status(204),
    })?;
    // The longest there is: what happens meanwhile may be slow, and must not become a time-out.
    service
        .endpoint("moving", &receiver.url("/old"), |draft| {
            draft.deadline = std::time::Duration::from_secs(30);
        })
        .await?;
    let (_api, client) = service.api().await?;
    let _worker = service.worker("worker").await?;
    submit(&client, "moving", "key-1", "{}").await?;
    receiver.wait_for_requests(1, LONG).await?;
    let change = json!({ "url": receiver.url("/new") });
    let json = [(CONTENT_TYPE, "application/json")];
    let path = "/v1/endpoints/moving";
    let changed =
        client.send(Method::PATCH, path, &json, Some(serde_json::to_vec(&change)?.into())).await?;
    ensure!(changed.status == StatusCode::OK, "{changed:?}");
    hold.release_all();

    let mut connection = service.database.connect().await?;
    eventually("the old delivery is gone", LONG, async || {
        let gone: i64 = sqlx::query_scalar(
            "select count(*) from fencepost.deliveries where state = 3 and reason = 2",
        )
        .fetch_one(&mut connection)
        .await?;
        ensure!(gone == 1, "{gone} are");
        Ok(())
    })
    .await?;
    submit(&client, "moving", "key-2", "{}").await?;
    receiver.wait_for_requests(2, LONG).await?;
    assert_eq!(receiver.requests()[1].path(), "/new");
    let shown: Value = client.get(path).await?.json()?;
    assert_eq!(shown["enabled"], true, "{shown}");
    assert_consistent(&service.database).await
}
