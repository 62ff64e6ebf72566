//! Lists and their parameters.

use serde_json::{Value, json};

use crate::harness::{Api, problem};

const LISTS: [&str; 3] = ["/v1/endpoints", "/v1/submissions", "/v1/deliveries"];

fn ids(list: &Value) -> Vec<String> {
    let rows = list["data"].as_array().unwrap();
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_newest_first_and_as_long_as_was_asked_for() {
    let api = Api::start().await;
    let mut submitted = Vec::new();
    api.create_endpoint("orders").await;
    for _ in 0..3 {
        let accepted = api.submit("orders").body("x").send().await.json();
        submitted.push(accepted["submission_id"].as_str().unwrap().to_owned());
    }
    submitted.sort();
    submitted.reverse();
    assert_eq!(ids(&api.get("/v1/submissions").send().await.json()), submitted);
    let two = ids(&api.get("/v1/submissions?limit=2").send().await.json());
    assert_eq!(two, submitted[..2]);
    assert_eq!(ids(&api.get("/v1/deliveries?limit=250").send().await.json()).len(), 3);
    assert_eq!(ids(&api.get("/v1/endpoints?limit=1").send().await.json()), ["orders"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_narrowed_to_an_endpoint_and_to_a_state() {
    let api = Api::start().await;
    for id in ["orders", "invoices"] {
        api.create_endpoint(id).await;
        api.submit(id).body("x").send().await;
    }
    for list in ["/v1/submissions", "/v1/deliveries"] {
        let narrowed = api.get(&format!("{list}?endpoint_id=invoices")).send().await.json();
        let rows = narrowed["data"].as_array().unwrap();
        assert_eq!(rows.len(), 1, "{list}");
        assert_eq!(rows[0]["endpoint_id"], "invoices");
    }
    let pending = api.get("/v1/deliveries?state=pending&endpoint_id=orders").send().await.json();
    assert_eq!(ids(&pending).len(), 1);
    let failed = api.get("/v1/deliveries?state=failed").send().await.json();
    assert_eq!(failed, json!({"data": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_out_of_range_or_unknown_is_named() {
    let api = Api::start().await;
    for list in LISTS {
        for limit in ["0", "251", "x", "", "-1", "1.5"] {
            let answer = api.get(&format!("{list}?limit={limit}")).send().await;
            assert_eq!(answer.problem(), problem(422, "query_invalid"), "{list} {limit}");
            let error = answer.json()["errors"][0].clone();
            assert_eq!(error["field"], "limit");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("1 to 250"), "{message}");
        }
        for unknown in ["offset=1", "LIMIT=1", "limit=1&limit=2"] {
            let answer = api.get(&format!("{list}?{unknown}")).send().await;
            assert_eq!(answer.problem(), problem(422, "query_invalid"), "{list} {unknown}");
        }
    }
    let answer = api.get("/v1/deliveries?state=lost").send().await;
    assert_eq!(answer.errors(), [("state".to_owned(), "state_unknown".to_owned())]);
    let answer = api.get("/v1/deliveries?endpoint_id=Orders").send().await;
    assert_eq!(answer.errors(), [("endpoint_id".to_owned(), "id_malformed".to_owned())]);
    let answer = api.get("/v1/deliveries?endpoint_id=nothing").send().await;
    assert_eq!(answer.problem(), problem(404, "endpoint_not_found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_no_parameter_refuses_every_one() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    for request in [
        api.get("/v1/endpoints/orders?x=1"),
        api.post("/v1/endpoints?x=1").json(&json!({"url": "https://example.com/hook"})),
        api.post("/v1/endpoints/orders/submissions?idempotency_key=k").body("x"),
    ] {
        assert_eq!(request.send().await.problem(), problem(422, "query_invalid"));
    }
    assert!(api.submissions().await.is_empty());
}
