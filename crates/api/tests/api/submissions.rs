//! Submissions: accepted, read back, and refused.

use serde_json::json;

use crate::harness::{Api, problem};

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_is_stored_with_its_delivery_before_it_is_answered() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let request = api.submit("orders").header("Content-Type", "application/json");
    let answer =
        request.header("Fencepost-Event-Type", "order.paid").body(r#"{"b":1,"a":2}"#).send().await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(answer.header("idempotent-replayed"), None);
    let accepted = answer.json();
    assert_eq!(
        (&accepted["endpoint_id"], &accepted["replayed"]),
        (&json!("orders"), &json!(false))
    );
    let id = accepted["submission_id"].as_str().unwrap();

    let stored = api.get(&format!("/v1/submissions/{id}")).send().await.json();
    assert_eq!(
        stored,
        json!({
            "id": id,
            "webhook_id": id,
            "resend_of": null,
            "endpoint_id": "orders",
            "delivery_ids": accepted["delivery_ids"],
            "event_type": "order.paid",
            "content_type": "application/json",
            "payload_bytes": 13,
            "received_at": accepted["received_at"],
            "payload_erased_at": null,
            "receipt": null,
        })
    );
    let delivery = accepted["delivery_ids"][0].as_str().unwrap();
    let delivery = api.get(&format!("/v1/deliveries/{delivery}")).send().await.json();
    assert_eq!(
        (&delivery["state"], &delivery["submission_id"], &delivery["attempts"]),
        (&json!("pending"), &json!(id), &json!([]))
    );
}

/// Cases C010, C013, C017 and C018.
#[tokio::test(flavor = "multi_thread")]
async fn the_payload_comes_back_byte_for_byte_with_its_content_type() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    for (content_type, payload) in [
        ("application/json", br#"{"b":1, "a":2,"aa":3,"Z":{"y":1,"x":2}}"#.to_vec()),
        (
            "application/json",
            br#"{"i":123456789012345678901234567890,"f":9007199254740991.0}"#.to_vec(),
        ),
        ("application/json", "{\"t\":\"ñ 😊 \u{2028}\"}".into()),
        ("application/json", br#"{"inner":"{\"x\":\"\\u0000\"}"}"#.to_vec()),
        ("Text/Plain; charset=\"latin 1\"", b"caf\xe9\0".to_vec()),
        ("application/octet-stream", (0..=255).collect()),
        ("text/html", b"<script>alert(1)</script>".to_vec()),
        ("application/x-empty", Vec::new()),
    ] {
        let request = api.submit("orders").header("Content-Type", content_type);
        let accepted = request.body(&payload).send().await;
        assert_eq!(accepted.status, 202, "{content_type} {accepted:?}");
        let id = accepted.json()["submission_id"].as_str().unwrap().to_owned();
        let read = api.get(&format!("/v1/submissions/{id}/payload")).send().await;
        assert_eq!(read.status, 200);
        assert_eq!(read.body, payload, "{content_type}");
        assert_eq!(read.header("content-type"), Some(content_type));
        assert_eq!(read.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(read.header("content-disposition"), Some("attachment"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_without_a_content_type_is_an_octet_stream() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    assert_eq!(api.submit("orders").body("{").send().await.status, 202);
    let stored = api.submissions().await;
    let stored = stored.first().unwrap();
    assert_eq!(
        (stored.content_type.as_str(), stored.payload_bytes),
        ("application/octet-stream", 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn declared_json_that_is_none_is_refused_with_its_place() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    for content_type in ["application/json", "text/json", "application/cloudevents+JSON; v=1"] {
        let request = api.submit("orders").header("Content-Type", content_type);
        let answer = request.body("{\"a\":\n1,}").send().await;
        assert_eq!(answer.problem(), problem(422, "json_malformed"), "{content_type}");
        let document = answer.json();
        assert_eq!((&document["line"], &document["column"]), (&json!(2), &json!(3)));
    }
    assert!(api.submissions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_header_is_named_and_nothing_is_stored() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let long = "a".repeat(256);
    let event = "Fencepost-Event-Type";
    for (name, value, refused, rule) in [
        ("Content-Type", "json", (415, "content_type_malformed"), "content_type_malformed"),
        ("Content-Type", "a/b; c", (415, "content_type_malformed"), "content_type_malformed"),
        ("Content-Type", "", (415, "content_type_malformed"), "content_type_empty"),
        (
            "Content-Type",
            &format!("a/{long}"),
            (415, "content_type_malformed"),
            "content_type_too_long",
        ),
        (event, "", (422, "event_type_invalid"), "event_type_empty"),
        (event, &long, (422, "event_type_invalid"), "event_type_too_long"),
        (event, "a b", (422, "event_type_invalid"), "event_type_forbidden_character"),
        (event, "größe", (422, "event_type_invalid"), "event_type_forbidden_character"),
        (event, "a..b", (422, "event_type_invalid"), "event_type_empty_identifier"),
    ] {
        let answer = api.submit("orders").header(name, value).body("{}").send().await;
        assert_eq!(answer.problem(), problem(refused.0, refused.1), "{name}: {value}");
        assert_eq!(answer.errors(), [(name.to_owned(), rule.to_owned())], "{name}: {value}");
    }
    for (name, value) in [("Content-Type", "a/b"), (event, "a.b")] {
        let twice = api.submit("orders").header(name, value).header(name, value);
        let answer = twice.send().await;
        let (field, rule) = answer.errors().remove(0);
        assert_eq!(field, name);
        assert!(rule.ends_with("_repeated"), "{rule}");
    }
    assert!(api.submissions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encoded_body_is_refused_since_its_receiver_could_not_decode_it() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let answer = api.submit("orders").header("Content-Encoding", "gzip").body("x").send().await;
    assert_eq!(answer.problem(), problem(415, "content_encoding_unsupported"));
    assert!(api.submissions().await.is_empty());
    let answer = api.submit("orders").header("Content-Encoding", "identity").body("x").send().await;
    assert_eq!(answer.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_thing_that_is_wrong_in_the_fixed_order_is_told() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let bad = |endpoint: &str| {
        api.submit(endpoint)
            .header("Idempotency-Key", "")
            .header("Fencepost-Event-Type", "")
            .header("Content-Type", "application/json")
    };
    let large = vec![b'{'; 256 * 1024 + 1];
    let answer = bad("nothing").body(large).send().await;
    assert_eq!(answer.problem(), problem(413, "body_too_large"));
    let answer = bad("nothing").body("{").send().await;
    assert_eq!(answer.problem(), problem(404, "endpoint_not_found"));
    let answer = bad("orders").body("{").send().await;
    assert_eq!(answer.problem(), problem(400, "idempotency_key_invalid"));
    let answer = bad("orders").without("Idempotency-Key").body("{").send().await;
    assert_eq!(answer.problem(), problem(422, "event_type_invalid"));
    let request = bad("orders").without("Idempotency-Key").without("Fencepost-Event-Type");
    let answer = request.clone().without("Content-Type").header("Content-Type", "x").send().await;
    assert_eq!(answer.problem(), problem(415, "content_type_malformed"));
    let answer = request.body("{").send().await;
    assert_eq!(answer.problem(), problem(422, "json_malformed"));
    assert!(api.submissions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_does_not_exist_is_a_404_however_its_id_is_written() {
    let api = Api::start().await;
    for id in ["0190f5fe-7c00-7a00-8a00-000000000001", "x", "0190f5fe7c007a008a00000000000001"] {
        for path in [format!("/v1/submissions/{id}"), format!("/v1/submissions/{id}/payload")] {
            let answer = api.get(&path).send().await;
            assert_eq!(answer.problem(), problem(404, "submission_not_found"), "{path}");
        }
    }
}
