//! Whether the process lives, and whether it can work.

use serde_json::json;

use crate::harness::{Api, problem};

#[tokio::test(flavor = "multi_thread")]
async fn a_process_with_its_database_lives_and_is_ready() {
    let api = Api::start().await;
    let live = api.get("/livez").without("Authorization").send().await;
    assert_eq!((live.status, live.json()), (200, json!({"status": "live"})));
    let private = api.running.private_address();
    for (path, status) in [("/livez", "live"), ("/readyz", "ready")] {
        let answer = api.get(path).without("Authorization").to(private).send().await;
        assert_eq!((answer.status, answer.json()), (200, json!({"status": status})), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_its_database_lives_and_is_not_ready() {
    let api = Api::start_without_database().await;
    assert_eq!(api.get("/livez").send().await.status, 200);
    let answer = api.get("/readyz").to(api.running.private_address()).send().await;
    assert_eq!(answer.problem(), problem(503, "not_ready"));
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("database"), "{detail}");
    assert!(!detail.contains("nobody") && !detail.contains("127.0.0.1"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_database_a_call_is_a_503_that_says_when_to_come_back() {
    let api = Api::start_without_database().await;
    for request in [api.get("/v1/endpoints"), api.submit("orders").body("{}")] {
        let answer = request.send().await;
        assert_eq!(answer.problem(), problem(503, "database_unavailable"));
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert!(!String::from_utf8_lossy(&answer.body).contains("nobody"));
    }
}
