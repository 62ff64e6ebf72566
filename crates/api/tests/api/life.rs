//! How an endpoint does, as its answers show it.

use serde_json::json;

use crate::deliveries::{endpoint, fail, submit};
use crate::harness::Api;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_failures_is_shown_with_its_countdown_until_somebody_enables_the_endpoint() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    submit(&api).await;
    fail(&api, b"no").await;
    let read = api.get("/v1/endpoints/orders").send().await.json();
    let run = &read["failing"];
    let instant = |name: &str| run[name].as_str().unwrap().to_owned();
    assert_eq!(instant("since"), instant("last_failure_at"));
    assert!(instant("disables_at") > instant("since"), "{run}");
    let listed = api.get("/v1/endpoints").send().await.json();
    assert_eq!(listed["data"][0]["failing"], *run);

    let refused =
        api.request("PATCH", "/v1/endpoints/orders").json(&json!({"failing": null})).send().await;
    assert_eq!(refused.errors(), [("failing".to_owned(), "field_read_only".to_owned())]);

    let enabled = api.post("/v1/endpoints/orders/enable").send().await.json();
    assert_eq!(enabled["failing"], json!(null));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_says_when_it_was_disabled_and_why() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let change = json!({"enabled": false});
    let disabled = api.request("PATCH", "/v1/endpoints/orders").json(&change).send().await.json();
    assert_eq!(disabled["disabled_cause"], "operator");
    assert_eq!(disabled["disabled_at"], disabled["updated_at"]);
    let version = endpoint(&api).await.version;
    let again = json!({"enabled": false, "name": "x"});
    let again = api.request("PATCH", "/v1/endpoints/orders").json(&again).send().await.json();
    assert_eq!(again["version"], version + 1);
    assert_eq!(again["disabled_at"], disabled["disabled_at"], "it was disabled then");
    let enabled = api.post("/v1/endpoints/orders/enable").send().await.json();
    assert_eq!((&enabled["disabled_at"], &enabled["disabled_cause"]), (&json!(null), &json!(null)));
}
