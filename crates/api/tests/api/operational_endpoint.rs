//! Where events about the service go.

use serde_json::json;
use store::api_key::Role;

use crate::harness::{Api, create_application, create_key, problem};

const PATH: &str = "/v1/operational-endpoint";

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_names_the_endpoint_and_takes_it_away() {
    let api = Api::start().await;
    api.create_endpoint("ops").await;
    let nowhere = json!({"application_id": null, "endpoint_id": null});
    assert_eq!(api.get(PATH).send().await.json(), nowhere);
    let body = json!({"endpoint_id": "ops"});
    let named = api.request("PUT", PATH).json(&body).send().await;
    assert_eq!(named.status, 200, "{named:?}");
    assert_eq!(named.json(), json!({"application_id": "default", "endpoint_id": "ops"}));
    assert_eq!(api.get(PATH).send().await.json(), named.json());
    let missing = api.request("PUT", PATH).json(&json!({"endpoint_id": "none"})).send().await;
    assert_eq!(missing.problem(), problem(404, "endpoint_not_found"));
    assert_eq!(api.get(PATH).send().await.json(), named.json());
    assert_eq!(api.request("DELETE", PATH).send().await.status, 204);
    assert_eq!(api.get(PATH).send().await.json(), nowhere);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_one_application_neither_sees_nor_names_it() {
    let api = Api::start().await;
    let application = create_application(&api, "shop").await;
    let key = create_key(&*api.store, Role::Admin, Some(application)).await;
    for method in ["GET", "PUT", "DELETE"] {
        let refused = api.request(method, PATH).key(&key).json(&json!({"endpoint_id": "ops"}));
        assert_eq!(refused.send().await.problem(), problem(403, "key_bound"), "{method}");
    }
}
