//! Tenants: whose endpoints a call is about.

use serde_json::{Value, json};
use store::api_key::Role;

use crate::harness::{Api, create_application, create_key, problem};

#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_created_once_and_listed_newest_first() {
    let api = Api::start().await;
    let request = api.post("/v1/applications").json(&json!({"id": "shop", "name": "The shop"}));
    let answer = request.send().await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let created = answer.json();
    assert_eq!((&created["id"], &created["name"]), (&json!("shop"), &json!("The shop")));
    assert_eq!(request.send().await.problem(), problem(409, "application_id_taken"));
    let listed = api.get("/v1/applications").send().await.json();
    assert_eq!(listed["data"][0], created);
    assert_eq!(listed["data"][1]["id"], "default");
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
}

/// Everything that `key` sees with this query, as text.
async fn seen(api: &Api, key: &str, query: &str) -> String {
    let mut all = String::new();
    for list in ["/v1/endpoints", "/v1/submissions", "/v1/deliveries"] {
        let answer = api.get(&format!("{list}{query}")).key(key).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["data"].as_array().unwrap().len(), 1, "{list}{query}");
        all.push_str(&answer.json().to_string());
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_endpoint_in_two_applications_is_two_and_each_sees_its_own() {
    let api = Api::start().await;
    let shop = create_application(&api, "shop").await;
    let bound = create_key(api.store.as_ref(), Role::Admin, Some(shop)).await;

    // The key of all applications says which; the bound one need not.
    api.create_endpoint("orders").await;
    let body = json!({"id": "orders", "url": "https://shop.example.com/hook"});
    let created = api.post("/v1/endpoints?application_id=shop").json(&body).send().await;
    assert_eq!(created.status, 201, "{created:?}");
    let location = created.header("location").unwrap();
    assert_eq!(location, "/v1/endpoints/orders?application_id=shop");
    let at_location = api.get(location).send().await.json();
    assert_eq!(at_location["url"], "https://shop.example.com/hook");
    let answer = api.post("/v1/endpoints").key(&bound).json(&body).send().await;
    assert_eq!(answer.problem(), problem(409, "endpoint_id_taken"));

    let ours = api.submit("orders").header("Idempotency-Key", "one").body("ours").send().await;
    let theirs = api.submit("orders").key(&bound).header("Idempotency-Key", "one").body("theirs");
    let theirs = theirs.send().await;
    assert_eq!((ours.status, theirs.status), (202, 202), "one key in two applications is two");

    let id = |answer: Value| answer["submission_id"].as_str().unwrap().to_owned();
    let (ours, theirs) = (id(ours.json()), id(theirs.json()));
    let default_sees = seen(&api, &api.key, "").await;
    assert!(default_sees.contains(&ours) && !default_sees.contains(&theirs));
    assert_eq!(seen(&api, &api.key, "?application_id=default").await, default_sees);
    let shop_sees = seen(&api, &bound, "").await;
    assert!(shop_sees.contains(&theirs) && !shop_sees.contains(&ours));
    assert_eq!(seen(&api, &bound, "?application_id=shop").await, shop_sees);
    assert_eq!(seen(&api, &api.key, "?application_id=shop").await, shop_sees);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_that_is_unknown_or_not_the_keys_own_is_not_found() {
    let api = Api::start().await;
    let shop = create_application(&api, "shop").await;
    let bound = create_key(api.store.as_ref(), Role::Read, Some(shop)).await;
    let missing = problem(404, "application_not_found");
    let unknown = "/v1/endpoints?application_id=nobody";
    let (other, own) =
        ("/v1/endpoints?application_id=default", "/v1/endpoints?application_id=shop");
    assert_eq!(api.get(unknown).send().await.problem(), missing);
    assert_eq!(api.get(own).key(&bound).send().await.status, 200);
    let answers =
        [api.get(unknown).key(&bound).send().await, api.get(other).key(&bound).send().await];
    assert_eq!(answers[0].problem(), missing);
    assert_eq!(answers[0].body, answers[1].body, "which applications there are is not told");

    let answer = api.get("/v1/endpoints?application_id=Shop").send().await;
    assert_eq!(answer.problem(), problem(422, "query_invalid"));
    assert_eq!(answer.errors(), [("application_id".to_owned(), "id_malformed".to_owned())]);
    let twice = "/v1/endpoints?application_id=shop&application_id=shop";
    assert_eq!(api.get(twice).send().await.problem(), problem(422, "query_invalid"));
}
