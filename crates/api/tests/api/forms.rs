//! Public forms.

use std::time::Duration;

use domain::application::DEFAULT_APPLICATION_KEY;
use domain::rate_limit::RateLimit;
use serde_json::{Value, json};

use crate::harness::{Answer, Api, Request, problem, settings};

const URLENCODED: &str = "application/x-www-form-urlencoded";

async fn with_a_form(id: &str) -> Api {
    let api = Api::start().await;
    api.store_endpoint(DEFAULT_APPLICATION_KEY, id, |draft| draft.public_ingest = true).await;
    api
}

/// A form that a visitor sends, who has no key.
fn form(api: &Api, path: &str, body: &str) -> Request {
    let request = api.post(path).without("Authorization");
    request.header("Content-Type", URLENCODED).body(body)
}

async fn payload(api: &Api, taken: &Answer) -> (Value, Answer) {
    let id = taken.json()["submission_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/submissions/{id}");
    let submission = api.get(&path).send().await.json();
    (submission, api.get(&format!("{path}/payload")).send().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_becomes_a_json_submission_and_its_visitor_is_told_the_id_alone() {
    let api = with_a_form("contact").await;
    let body = "name=J%C3%BCrgen&topic=b&topic=a&note=";
    let taken = form(&api, "/f/contact", body).send().await;
    assert_eq!(taken.status, 202, "{taken:?}");
    assert_eq!(taken.json().as_object().unwrap().keys().collect::<Vec<_>>(), ["submission_id"]);
    let (submission, payload) = payload(&api, &taken).await;
    assert_eq!(submission["event_type"], "form.submitted");
    assert_eq!(submission["content_type"], "application/json");
    assert_eq!(submission["delivery_ids"].as_array().unwrap().len(), 1);
    assert_eq!(payload.body, r#"{"name":["Jürgen"],"topic":["b","a"],"note":[""]}"#.as_bytes());
}

/// Case C017: letters beyond ASCII, an emoji and a line separator, as text and as escapes.
#[tokio::test(flavor = "multi_thread")]
async fn a_multipart_form_is_the_same_submission() {
    let api = with_a_form("contact").await;
    let text = "ñ 😊 \u{2028} \\u00f1\r\nline";
    let body = format!(
        "--b\r\nContent-Disposition: form-data; name=\"größe\"\r\n\r\n{text}\r\n\
         --b\r\nContent-Disposition: form-data; name=\"größe\"\r\n\r\n\r\n--b--\r\n"
    );
    let request = api.post("/f/contact").without("Authorization").body(body);
    let taken = request.header("Content-Type", "multipart/form-data; boundary=b").send().await;
    assert_eq!(taken.status, 202, "{taken:?}");
    let (_, payload) = payload(&api, &taken).await;
    assert_eq!(payload.json(), json!({"größe": [text, ""]}));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_form_is_taken_looks_like_where_no_endpoint_is() {
    let api = with_a_form("contact").await;
    api.create_endpoint("private").await;
    let mut answers = Vec::new();
    for path in
        ["/f/private", "/f/missing", "/f/Malformed!", "/f/default/private", "/f/nobody/contact"]
    {
        let answer = form(&api, path, "a=1").send().await;
        assert_eq!(answer.problem(), problem(404, "endpoint_not_found"), "{path}");
        answers.push(answer.body);
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "nobody learns which endpoints there are");
    assert!(api.submissions().await.is_empty());
    let named = form(&api, "/f/default/contact", "a=1").send().await;
    assert_eq!(named.status, 202, "the application may be named");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_form_has_a_code_of_its_own() {
    let api = with_a_form("contact").await;
    let many = vec!["a=1"; 101].join("&");
    let long_name = format!("{}=1", "n".repeat(201));
    let long_value = format!("a={}", "v".repeat(65_537));
    for (body, code) in [
        (many.as_str(), "form_fields_too_many"),
        (&long_name, "form_name_too_long"),
        (&long_value, "form_value_too_long"),
        ("=1", "form_name_missing"),
        ("a=%FF", "form_encoding_invalid"),
    ] {
        let answer = form(&api, "/f/contact", body).send().await;
        assert_eq!(answer.problem(), problem(422, code));
    }
    let typed = |content_type: &str, body: &str| {
        let request = form(&api, "/f/contact", body).without("Content-Type");
        let request = request.header("Content-Type", content_type);
        async move { request.send().await }
    };
    let file =
        "--b\r\nContent-Disposition: form-data; name=\"x\"; filename=\"a\"\r\n\r\n1\r\n--b--";
    let multipart = "multipart/form-data; boundary=b";
    assert_eq!(typed(multipart, file).await.problem(), problem(422, "form_file_refused"));
    assert_eq!(typed(multipart, "--b\r\n").await.problem(), problem(422, "form_malformed"));
    let json = typed("application/json", "{}").await;
    assert_eq!(json.problem(), problem(415, "form_type_unsupported"));
    let latin = typed(&format!("{URLENCODED}; charset=iso-8859-1"), "a=1").await;
    assert_eq!(latin.problem(), problem(415, "form_charset_unsupported"));
    assert!(api.submissions().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_within_the_body_limit_also_once_it_is_json() {
    let limited = api::Settings { body_limit_bytes: 100, ..settings() };
    let api = Api::start_with(limited).await;
    api.store_endpoint(DEFAULT_APPLICATION_KEY, "contact", |draft| draft.public_ingest = true)
        .await;
    let large = form(&api, "/f/contact", &"a".repeat(101)).send().await;
    assert_eq!(large.problem(), problem(413, "body_too_large"));
    // 20 bytes that JSON writes as six each.
    let escaped = form(&api, "/f/contact", &format!("a={}", "\u{1}".repeat(20))).send().await;
    assert_eq!(escaped.problem(), problem(413, "body_too_large"));
    assert_eq!(form(&api, "/f/contact", &format!("a={}", "b".repeat(80))).send().await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitors_idempotency_key_is_long_and_no_producers_key() {
    let api = with_a_form("contact").await;
    let key = "0123456789abcdef";
    let keyed = |key: &str| form(&api, "/f/contact", "a=1").header("Idempotency-Key", key);
    let short = keyed("0123456789abcde").send().await;
    assert_eq!(short.problem(), problem(400, "idempotency_key_invalid"));
    let rule = ("Idempotency-Key".to_owned(), "idempotency_key_too_short".to_owned());
    assert_eq!(short.errors(), [rule]);
    let (first, again) = (keyed(key).send().await, keyed(key).send().await);
    assert_eq!((first.status, again.status), (202, 202));
    assert_eq!(first.json(), again.json());
    let other = keyed(key).body("a=2").send().await;
    assert_eq!(other.problem(), problem(422, "idempotency_key_reused"));
    // A visitor who guesses a producer's key takes nothing from it.
    let producer = api.submit("contact").header("Idempotency-Key", key).body("order").send().await;
    assert_eq!((producer.status, producer.header("idempotent-replayed")), (202, None));
    assert_eq!(api.submissions().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_spends_from_the_endpoints_budget() {
    let api = Api::start().await;
    let limit = RateLimit::new(2, Duration::from_hours(24)).unwrap();
    api.store_endpoint(DEFAULT_APPLICATION_KEY, "contact", |draft| {
        (draft.public_ingest, draft.ingest_rate) = (true, limit);
    })
    .await;
    assert_eq!(form(&api, "/f/contact", "=nameless").send().await.status, 422);
    assert_eq!(form(&api, "/f/contact", "a=1").send().await.status, 202);
    let limited = form(&api, "/f/contact", "a=1").send().await;
    assert_eq!(limited.problem(), problem(429, "rate_limited"));
    assert_eq!(limited.json()["scope"], "endpoint");
    let submitted = api.submit("contact").body("x").send().await;
    assert_eq!(submitted.problem(), problem(429, "rate_limited"), "the same budget");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_database_no_form_is_taken() {
    let api = Api::start_without_database().await;
    let answer = form(&api, "/f/contact", "a=1").send().await;
    assert_eq!(answer.problem(), problem(503, "database_unavailable"));
    assert_eq!(answer.header("retry-after"), Some("1"));
}
