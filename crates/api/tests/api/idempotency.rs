//! Idempotency keys.

use serde_json::json;

use crate::harness::{Answer, Api, Request, problem};

/// One submission and 49 copies at once.
const COPIES: usize = 50;

fn keyed(api: &Api, key: &str) -> Request {
    let request = api.submit("orders").header("Idempotency-Key", key);
    request.header("Content-Type", "application/json").body(r#"{"a":1}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_submission_again_gets_the_original_answer() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let first = keyed(&api, "k1").send().await;
    let second = keyed(&api, "k1").send().await;
    assert_eq!((first.status, second.status), (202, 202));
    assert_eq!(first.header("idempotent-replayed"), None);
    assert_eq!(second.header("idempotent-replayed"), Some("true"));
    let (mut first, mut second) = (first.json(), second.json());
    assert_eq!(first["replayed"].take(), json!(false));
    assert_eq!(second["replayed"].take(), json!(true));
    assert_eq!(first, second);
    assert_eq!(api.submissions().await.len(), 1);
}

/// Case C051.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_with_one_key_one_is_stored_and_all_get_its_answer() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let requests = (0..COPIES).map(|_| {
        let request = keyed(&api, "k1");
        tokio::spawn(async move { request.send().await })
    });
    let mut answers: Vec<Answer> = Vec::new();
    for request in requests.collect::<Vec<_>>() {
        answers.push(request.await.unwrap());
    }
    let stored = api.submissions().await;
    assert_eq!(stored.len(), 1);
    let winner = json!(stored.first().unwrap().id);
    for answer in &answers {
        assert_eq!(answer.status, 202, "{answer:?}");
        assert_eq!(answer.json()["submission_id"], winner);
    }
    let first = answers.iter().filter(|answer| answer.json()["replayed"] == json!(false));
    assert_eq!(first.count(), 1);
}

/// Case C050.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_used_for_other_content_is_refused_and_tells_nothing_of_it() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let first = keyed(&api, "k1").send().await.json();
    let event = keyed(&api, "k1").header("Fencepost-Event-Type", "order.paid");
    let content_type =
        keyed(&api, "k1").without("Content-Type").header("Content-Type", "text/json");
    for other in [
        keyed(&api, "k1").body(r#"{"a":2}"#),
        keyed(&api, "k1").body(r#"{"a": 1}"#),
        event,
        content_type,
    ] {
        let answer = other.send().await;
        assert_eq!(answer.problem(), problem(422, "idempotency_key_reused"));
        let id = first["submission_id"].as_str().unwrap();
        assert!(!format!("{answer:?}").contains(id));
    }
    assert_eq!(api.submissions().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_counts_for_its_endpoint_only() {
    let api = Api::start().await;
    for id in ["orders", "invoices"] {
        api.create_endpoint(id).await;
        let request = api.submit(id).header("Idempotency-Key", "k1").body("same");
        assert_eq!(request.send().await.json()["replayed"], json!(false), "{id}");
    }
    assert_eq!(api.submissions().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_the_same_bytes_are_new_each_time() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    for _ in 0..2 {
        assert_eq!(api.submit("orders").body("same").send().await.status, 202);
    }
    assert_eq!(api.submissions().await.len(), 2);
}

/// Case C048.
#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_key_is_refused_and_never_cut() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    for (key, rule) in [
        (Vec::new(), "idempotency_key_empty"),
        (b"   ".to_vec(), "idempotency_key_empty"),
        (vec![b'k'; 256], "idempotency_key_too_long"),
        (vec![b'k'; 8192], "idempotency_key_too_long"),
        (b"a b".to_vec(), "idempotency_key_not_visible_ascii"),
        (b"schl\xc3\xbcssel".to_vec(), "idempotency_key_not_visible_ascii"),
        (b"\xff".to_vec(), "idempotency_key_not_visible_ascii"),
    ] {
        let answer = api.submit("orders").header("Idempotency-Key", &key).body("x").send().await;
        assert_eq!(answer.problem(), problem(400, "idempotency_key_invalid"), "{key:?}");
        let expected = ("Idempotency-Key".to_owned(), rule.to_owned());
        assert_eq!(answer.errors(), [expected], "{key:?}");
    }
    let twice = api.submit("orders").header("Idempotency-Key", "a").header("Idempotency-Key", "b");
    let answer = twice.body("x").send().await;
    assert_eq!(answer.problem(), problem(400, "idempotency_key_invalid"));
    assert!(api.submissions().await.is_empty());

    for key in ["k".repeat(255), format!("{}x", "k".repeat(254))] {
        let answer = api.submit("orders").header("Idempotency-Key", key).body("x").send().await;
        assert_eq!(answer.json()["replayed"], json!(false));
    }
}
