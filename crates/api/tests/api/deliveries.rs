//! Deliveries: shown with their attempts, and replayed.

use std::time::Duration;

use bytes::Bytes;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::{FailureReason, Outcome, Verdict};
use domain::endpoint::DisabledCause;
use domain::id::PublicId;
use serde_json::{Value, json};
use store::delivery::{ClaimRequest, Evidence, Recording, Report};
use store::endpoint::Endpoint;

use crate::harness::{Api, problem};

pub(crate) async fn endpoint(api: &Api) -> Endpoint {
    let id = PublicId::parse("orders").unwrap();
    api.store.find_endpoint(DEFAULT_APPLICATION_KEY, &id).await.unwrap().unwrap()
}

/// Submits to `orders` and answers the delivery's id.
pub(crate) async fn submit(api: &Api) -> String {
    let accepted = api.submit("orders").body("x").send().await.json();
    accepted["delivery_ids"][0].as_str().unwrap().to_owned()
}

/// Claims what is due and reports a 500 with this body, which ends the cycle.
pub(crate) async fn fail(api: &Api, response: &'static [u8]) {
    let endpoint = endpoint(api).await.key;
    let token = store::new_id::claim_token();
    let request = ClaimRequest {
        endpoints: &[endpoint],
        per_endpoint: 1,
        total: 1,
        worker: "w1",
        token,
        sweep: true,
    };
    let batch = api.store.claim_due(&request).await.unwrap();
    let claimed = batch.claimed.first().expect("a due delivery");
    let report = Report {
        endpoint,
        delivery: claimed.delivery,
        token,
        version: 1,
        worker: "w1".to_owned(),
        started_at: batch.database_now,
        duration: Duration::from_millis(12),
        outcome: Outcome::Answered { status: 500, retry_after: None },
        verdict: Verdict::Failed { reason: FailureReason::AttemptsExhausted },
        evidence: Evidence {
            url: "https://example.com/hook".to_owned(),
            response: Bytes::from_static(response),
            ..Evidence::default()
        },
    };
    let recorded = api.store.record_attempts(&[report]).await.unwrap();
    assert!(matches!(recorded.as_slice(), [Recording::Fenced(_)]), "{recorded:?}");
}

pub(crate) async fn read(api: &Api, id: &str) -> Value {
    let answer = api.get(&format!("/v1/deliveries/{id}")).send().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_shown_with_its_attempts_in_order() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let id = submit(&api).await;
    fail(&api, b"first").await;
    api.post(&format!("/v1/deliveries/{id}/replay")).send().await;
    fail(&api, b"\xff\x00").await;

    let shown = read(&api, &id).await;
    assert_eq!(shown["id"], json!(id));
    assert_eq!(shown["state"], "failed");
    assert_eq!(shown["reason"], "attempts_exhausted");
    assert_eq!((&shown["attempt_count"], &shown["cycle_attempt_count"]), (&json!(2), &json!(1)));
    assert_eq!(shown["lapse_count"], 0);
    assert!(shown["replayable_until"].is_string());
    let attempts = shown["attempts"].as_array().unwrap();
    let numbers: Vec<_> = attempts.iter().map(|attempt| attempt["number"].as_u64()).collect();
    assert_eq!(numbers, [Some(1), Some(2)]);
    for attempt in attempts {
        assert_eq!(attempt["url"], "https://example.com/hook");
        assert_eq!((&attempt["outcome"], &attempt["status"]), (&json!("answered"), &json!(500)));
        assert_eq!((&attempt["worker"], &attempt["late"]), (&json!("w1"), &json!(false)));
        assert_eq!(attempt["duration_ms"], 12);
    }
    let text = json!({"encoding": "utf8", "body": "first", "truncated": false});
    let bytes = json!({"encoding": "base64", "body": "/wA=", "truncated": false});
    assert_eq!((&attempts[0]["response"], &attempts[1]["response"]), (&text, &bytes));

    let listed = api.get("/v1/deliveries?state=failed").send().await.json();
    let row = &listed["data"][0];
    assert_eq!((&row["id"], &row["attempts"]), (&json!(id), &Value::Null));
}

/// G5 as a caller sees it.
#[tokio::test(flavor = "multi_thread")]
async fn of_several_operators_who_replay_one_failed_delivery_one_wins() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let id = submit(&api).await;
    fail(&api, b"").await;
    let replay = api.post(&format!("/v1/deliveries/{id}/replay"));
    let requests: Vec<_> = (0..8)
        .map(|_| {
            let replay = replay.clone();
            tokio::spawn(async move { replay.send().await })
        })
        .collect();
    let mut winners = 0;
    for request in requests {
        let answer = request.await.unwrap();
        if answer.status == 200 {
            winners += 1;
            assert_eq!(answer.json(), json!({"id": id, "state": "pending"}));
        } else {
            assert_eq!(answer.problem(), problem(409, "delivery_not_replayable"));
            assert_eq!(answer.json()["state"], "pending");
        }
    }
    assert_eq!(winners, 1);
    let shown = read(&api, &id).await;
    assert_eq!((&shown["attempt_count"], &shown["cycle_attempt_count"]), (&json!(1), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_is_not_failed_is_not_replayed() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let id = submit(&api).await;
    let answer = api.post(&format!("/v1/deliveries/{id}/replay")).send().await;
    assert_eq!(answer.problem(), problem(409, "delivery_not_replayable"));
    assert_eq!(answer.json()["state"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_of_a_disabled_endpoint_is_not_replayed() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let id = submit(&api).await;
    fail(&api, b"").await;
    let disabled = endpoint(&api).await;
    api.store.disable_endpoint(disabled.key, disabled.version, DisabledCause::Gone).await.unwrap();
    let answer = api.post(&format!("/v1/deliveries/{id}/replay")).send().await;
    assert_eq!(answer.problem(), problem(409, "endpoint_disabled"));
    assert_eq!(read(&api, &id).await["state"], "failed");
    let shown = api.get("/v1/endpoints/orders").send().await.json();
    assert_eq!((&shown["enabled"], &shown["disabled_cause"]), (&json!(false), &json!("gone")));
    // Submissions are accepted all the same, and held.
    assert_eq!(api.submit("orders").body("x").send().await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_does_not_exist_is_a_404_however_its_id_is_written() {
    let api = Api::start().await;
    for id in ["0190f5fe-7c00-7a00-8a00-000000000001", "x", "0190f5fe7c007a008a00000000000001"] {
        let answer = api.get(&format!("/v1/deliveries/{id}")).send().await;
        assert_eq!(answer.problem(), problem(404, "delivery_not_found"), "{id}");
        let answer = api.post(&format!("/v1/deliveries/{id}/replay")).send().await;
        assert_eq!(answer.problem(), problem(404, "delivery_not_found"), "{id}");
    }
}
