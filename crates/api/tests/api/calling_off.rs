//! Deliveries that an operator cancels or resends, and payloads that are erased.

use domain::endpoint::DisabledCause;
use serde_json::{Value, json};
use store::delivery::ClaimRequest;

use crate::deliveries::{endpoint, fail, read, submit};
use crate::harness::{Answer, Api, problem};

async fn cancel(api: &Api, id: &str) -> Answer {
    api.post(&format!("/v1/deliveries/{id}/cancel")).send().await
}

async fn claim(api: &Api) {
    let endpoint = endpoint(api).await.key;
    let request = ClaimRequest {
        endpoints: &[endpoint],
        per_endpoint: 1,
        total: 1,
        worker: "w1",
        token: store::new_id::claim_token(),
        sweep: true,
    };
    assert_eq!(api.store.claim_due(&request).await.unwrap().claimed.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_is_owed_is_cancelled_at_once_and_once() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let id = submit(&api).await;
    let answer = cancel(&api, &id).await;
    assert_eq!(answer.status, 200);
    let expected = json!({"id": id, "state": "cancelled", "cancel_requested": false});
    assert_eq!(answer.json(), expected);
    let shown = read(&api, &id).await;
    assert_eq!((&shown["state"], &shown["reason"]), (&json!("cancelled"), &json!("operator")));
    assert_ne!(shown["settled_at"], Value::Null);
    let answer = cancel(&api, &id).await;
    assert_eq!(answer.problem(), problem(409, "delivery_not_cancellable"));
    assert_eq!(answer.json()["state"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_a_worker_has_is_only_marked() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let id = submit(&api).await;
    claim(&api).await;
    assert_eq!(read(&api, &id).await["cancel_requested"], false);
    for _ in 0..2 {
        let answer = cancel(&api, &id).await;
        assert_eq!(answer.status, 202);
        let expected = json!({"id": id, "state": "processing", "cancel_requested": true});
        assert_eq!(answer.json(), expected);
        assert_eq!(read(&api, &id).await["cancel_requested"], true);
        let listed = api.get("/v1/deliveries").send().await.json();
        assert_eq!(listed["data"][0]["cancel_requested"], true);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resend_answers_like_a_submission_and_names_what_it_resends() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let accepted = api.submit("orders").body("the bytes").send().await.json();
    let (old, delivery) = (&accepted["submission_id"], &accepted["delivery_ids"][0]);
    let resend = api.post(&format!("/v1/deliveries/{}/resend", delivery.as_str().unwrap()));

    let answer = resend.send().await;
    assert_eq!(answer.status, 202);
    let resent = answer.json();
    assert_eq!((&resent["resend_of"], &resent["endpoint_id"]), (old, &json!("orders")));
    assert_eq!(resent["replayed"], false);
    assert_ne!(&resent["submission_id"], old);
    assert_ne!(&resent["delivery_ids"][0], delivery);

    let path = format!("/v1/submissions/{}", resent["submission_id"].as_str().unwrap());
    let shown = api.get(&path).send().await.json();
    assert_eq!((&shown["resend_of"], &shown["webhook_id"]), (old, old));
    assert_eq!(api.get(&format!("{path}/payload")).send().await.body, b"the bytes");

    let keyed = resend.header("Idempotency-Key", "again");
    let (first, second) = (keyed.send().await, keyed.send().await);
    assert_eq!(first.header("idempotent-replayed"), None);
    assert_eq!(second.header("idempotent-replayed"), Some("true"));
    assert_eq!(first.json()["submission_id"], second.json()["submission_id"]);
    assert_eq!(second.json()["replayed"], true);
    let reused = api.submit("orders").header("Idempotency-Key", "again").body("x").send().await;
    assert_eq!(reused.problem(), problem(422, "idempotency_key_reused"));
    let empty = api
        .post(&format!("/v1/deliveries/{}/resend", delivery.as_str().unwrap()))
        .header("Idempotency-Key", "")
        .send()
        .await;
    assert_eq!(empty.problem(), problem(400, "idempotency_key_invalid"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_endpoint_gets_no_resend() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let id = submit(&api).await;
    let disabled = endpoint(&api).await;
    api.store.disable_endpoint(disabled.key, disabled.version, DisabledCause::Gone).await.unwrap();
    let answer = api.post(&format!("/v1/deliveries/{id}/resend")).send().await;
    assert_eq!(answer.problem(), problem(409, "endpoint_disabled"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_payload_is_gone_for_reading_replaying_and_resending() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let accepted = api.submit("orders").body("personal").send().await.json();
    let submission = accepted["submission_id"].as_str().unwrap();
    let delivery = accepted["delivery_ids"][0].as_str().unwrap();
    fail(&api, b"").await;
    let payload = format!("/v1/submissions/{submission}/payload");

    for _ in 0..2 {
        let answer = api.request("DELETE", &payload).send().await;
        assert_eq!((answer.status, answer.body.len()), (204, 0));
    }
    assert_eq!(api.get(&payload).send().await.problem(), problem(410, "payload_erased"));
    for call in ["replay", "resend"] {
        let answer = api.post(&format!("/v1/deliveries/{delivery}/{call}")).send().await;
        assert_eq!(answer.problem(), problem(410, "payload_erased"), "{call}");
    }
    let shown = read(&api, delivery).await;
    assert_eq!(
        (&shown["state"], &shown["reason"]),
        (&json!("cancelled"), &json!("payload_erased"))
    );
    let shown = api.get(&format!("/v1/submissions/{submission}")).send().await.json();
    assert_eq!(shown["payload_bytes"], 8);
    assert_ne!(shown["payload_erased_at"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_exist_cannot_be_called_off() {
    let api = Api::start().await;
    for id in ["0190f5fe-7c00-7a00-8a00-000000000001", "x"] {
        for call in ["cancel", "resend"] {
            let answer = api.post(&format!("/v1/deliveries/{id}/{call}")).send().await;
            assert_eq!(answer.problem(), problem(404, "delivery_not_found"), "{id} {call}");
        }
        let answer = api.request("DELETE", &format!("/v1/submissions/{id}/payload")).send().await;
        assert_eq!(answer.problem(), problem(404, "submission_not_found"), "{id}");
    }
}
