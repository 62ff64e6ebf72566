//! What sources send.

use std::fmt::Write as _;
use std::time::Duration;

use domain::application::DEFAULT_APPLICATION_KEY;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use store::api_key::Role;

use crate::harness::{Answer, Api, Request, create_application, create_key, problem, settings};

const GITHUB: &str = "It's a Secret to Everybody";

async fn with(source: Value) -> Api {
    let api = Api::start().await;
    create(&api, source).await;
    api
}

async fn create(api: &Api, mut source: Value) -> Value {
    if api.get("/v1/endpoints/orders").send().await.status == 404 {
        api.create_endpoint("orders").await;
    }
    source["endpoint_id"] = json!("orders");
    let created = api.post("/v1/sources").json(&source).send().await;
    assert_eq!(created.status, 201, "{created:?}");
    created.json()
}

fn github(id: &str) -> Value {
    json!({"id": id, "scheme": {"type": "github"}, "secret": GITHUB, "headers": ["X-GitHub-Event"]})
}

fn mac(secret: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    parts.iter().fold(mac, Hmac::chain_update).finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// A request of GitHub, who has no key.
fn sent(api: &Api, path: &str, delivery: &str, body: &[u8]) -> Request {
    api.post(path)
        .without("Authorization")
        .header("Content-Type", "application/json")
        .header("X-GitHub-Event", "push")
        .header("X-GitHub-Delivery", delivery)
        .header("X-Hub-Signature-256", format!("sha256={}", hex(&mac(GITHUB, &[body]))))
        .body(body)
}

fn nothing_told(answer: &Answer) {
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b""[..]), "{answer:?}");
}

async fn shown(api: &Api, id: &str) -> Value {
    api.get(&format!("/v1/sources/{id}")).send().await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_event_becomes_one_submission_and_its_copy_is_answered_alike() {
    let api = with(github("gh")).await;
    let body = br#"{"u64":18446744073709551615,"zen":"Keep it logically awesome."}"#;
    for _ in 0..2 {
        nothing_told(&sent(&api, "/in/gh", "d-1", body).send().await);
    }
    let stored = api.submissions().await;
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].event_type.as_deref(), Some("push"));
    assert_eq!(stored[0].deliveries.len(), 1);
    let path = format!("/v1/submissions/{}/payload", stored[0].id);
    assert_eq!(api.get(&path).send().await.body, body, "byte for byte");

    nothing_told(&sent(&api, "/in/gh", "d-2", body).send().await);
    assert_eq!(api.submissions().await.len(), 2, "another event");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_prove_itself_learns_that_and_the_operator_why() {
    let api = with(github("gh")).await;
    let right = sent(&api, "/in/gh", "d-1", b"{}");
    let flipped = right.clone().body(b"{|");
    let missing = right.clone().without("X-Hub-Signature-256");
    let mut told = Vec::new();
    for wrong in [flipped, missing] {
        let answer = wrong.send().await;
        assert_eq!(answer.problem(), problem(401, "signature_invalid"));
        told.push(answer.body);
    }
    assert_eq!(told[0], told[1], "the reason is not told");
    assert!(api.submissions().await.is_empty());

    let source = shown(&api, "gh").await;
    assert_eq!(source["refused"], 2);
    let codes = [&source["refusals"][0]["code"], &source["refusals"][1]["code"]];
    assert_eq!(codes, ["header_missing", "mismatch"]);
    nothing_told(&right.send().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_noted_as_far_as_their_budget_goes() {
    let api = with(github("gh")).await;
    let wrong = sent(&api, "/in/gh", "d-1", b"{}").body(b"{|");
    let mut statuses = Vec::new();
    for _ in 0..70 {
        statuses.push(wrong.send().await.status);
    }
    let count = |status| statuses.iter().filter(|it| **it == status).count();
    // A window of the database may end in between, once.
    assert!(count(401) >= 60 && count(401) + count(429) == 70, "{statuses:?}");
    assert_eq!(shown(&api, "gh").await["refused"], count(401));
    nothing_told(&sent(&api, "/in/gh", "d-1", b"{}").send().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_content_under_an_id_is_answered_and_not_stored() {
    let api = with(github("gh")).await;
    for body in [b"{\"a\":1}", b"{\"a\":2}"] {
        nothing_told(&sent(&api, "/in/gh", "d-1", body).send().await);
    }
    let stored = api.submissions().await;
    assert_eq!(stored.len(), 1);
    let path = format!("/v1/submissions/{}/payload", stored[0].id);
    assert_eq!(api.get(&path).send().await.body, b"{\"a\":1}", "the first one stands");
    let shown = api.get(&format!("/v1/submissions/{}", stored[0].id)).send().await.json();
    assert_eq!(
        shown["receipt"],
        json!({
            "source_id": "gh",
            "event_id": "d-1",
            "action": "push",
            "sent_at": null,
            "headers": [{"name": "x-github-event", "value": "push"}],
            "conflicted": true,
        })
    );
}

/// What is kept can be read by keys that only read: never the sender's own.
#[tokio::test(flavor = "multi_thread")]
async fn the_header_that_proves_the_sender_is_not_kept() {
    let scheme = json!({"type": "api_key", "header": "X-Key"});
    let api = with(json!({"id": "keyed", "scheme": scheme, "secret": "the sender's key",
        "headers": ["X-Key", "X-Other"]}))
    .await;
    let sent = api.post("/in/keyed").without("Authorization").body(b"{}");
    let sent = sent.header("X-Key", "the sender's key").header("X-Other", "kept");
    nothing_told(&sent.send().await);
    let id = api.submissions().await[0].id;
    let shown = api.get(&format!("/v1/submissions/{id}")).send().await;
    assert_eq!(shown.json()["receipt"]["headers"], json!([{"name": "x-other", "value": "kept"}]));
    assert!(!String::from_utf8_lossy(&shown.body).contains("the sender's key"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_id_the_body_is_the_id() {
    let api = with(github("gh")).await;
    let unnamed = sent(&api, "/in/gh", "d-1", b"{}").without("X-GitHub-Delivery");
    nothing_told(&unnamed.send().await);
    nothing_told(&unnamed.send().await);
    assert_eq!(api.submissions().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_id_is_an_event_of_each_source_and_of_each_application() {
    let api = with(github("one")).await;
    create(&api, github("two")).await;
    let shop = create_application(&api, "shop").await;
    let key = create_key(api.store.as_ref(), Role::Admin, Some(shop)).await;
    api.store_endpoint(shop, "orders", |_| {}).await;
    let mut source = github("one");
    source["endpoint_id"] = json!("orders");
    assert_eq!(api.post("/v1/sources").key(&key).json(&source).send().await.status, 201);
    for path in ["/in/one", "/in/two", "/in/shop/one"] {
        nothing_told(&sent(&api, path, "d-1", b"{}").send().await);
    }
    assert_eq!(api.submissions().await.len(), 2);
    for path in ["/in/three", "/in/shop/two", "/in/nobody/one", "/in/Malformed!"] {
        let answer = sent(&api, path, "d-1", b"{}").send().await;
        assert_eq!(answer.problem(), problem(404, "source_not_found"), "{path}");
    }
}

/// Cases C021 and C117: bytes that are not UTF-8, and a form that is not turned into anything.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_is_what_was_received() {
    let api = with(github("gh")).await;
    for (number, body) in [&b"payload=%7B%22zen%22%3A%22hi%22%7D"[..], b"text=caf\xe9\x00", b""]
        .into_iter()
        .enumerate()
    {
        let form = "application/x-www-form-urlencoded";
        let request = sent(&api, "/in/gh", &format!("d-{number}"), body);
        let request = request.without("Content-Type").header("Content-Type", form);
        nothing_told(&request.send().await);
        let stored = api.submissions().await;
        assert_eq!(stored[0].content_type, form);
        let path = format!("/v1/submissions/{}/payload", stored[0].id);
        assert_eq!(api.get(&path).send().await.body, body);
    }
}

/// Case C122: what is too large is refused before anybody is asked who sent it.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_refused_unread_and_unverified() {
    let api = with(github("gh")).await;
    let large = vec![b'a'; settings().body_limit_bytes + 1];
    for path in ["/in/gh", "/in/unknown"] {
        let request = api.post(path).without("Authorization").body(&large);
        assert_eq!(request.send().await.problem(), problem(413, "body_too_large"));
        assert_eq!(request.send_chunked().await.problem(), problem(413, "body_too_large"));
    }
    assert_eq!(shown(&api, "gh").await["refused"], 0);
}

/// Case C122: nesting without end, signed and unsigned.
#[tokio::test(flavor = "multi_thread")]
async fn json_that_is_nested_without_end_is_refused_and_harms_nobody() {
    let api = with(json!({
        "id": "st", "scheme": {"type": "hmac", "header": "X-Sig"}, "secret": "shared",
        "event_id": {"pointer": "/id"},
    }))
    .await;
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let inside = b"{\"id\":".repeat(40_000);
    for body in [deep, inside, b"{\"a\":".to_vec()] {
        let request = api.post("/in/st").without("Authorization").body(&body);
        let request = request.header("Content-Type", "application/json");
        let unsigned = request.clone().send().await;
        assert_eq!(unsigned.problem(), problem(401, "signature_invalid"));
        let signed = request.header("X-Sig", hex(&mac("shared", &[&body]))).send().await;
        assert_eq!(signed.problem(), problem(422, "json_malformed"));
    }
    assert_eq!(api.get("/livez").send().await.status, 200);
}

/// Case C116: signatures of other lengths and alphabets, over the wire.
#[tokio::test(flavor = "multi_thread")]
async fn no_signature_of_any_form_brings_the_service_down() {
    let api = with(github("gh")).await;
    let right = sent(&api, "/in/gh", "d-1", b"{}").without("X-Hub-Signature-256");
    for value in [
        &b"A".repeat(44)[..],
        b"sha256=",
        &[&b"sha256="[..], &b"a".repeat(63)[..]].concat()[..],
        b"sha256=zz",
        b"sha256=\xff\xfe",
        b"sha256= aa aa",
        &b"a".repeat(5_000)[..],
    ] {
        let answer = right.clone().header("X-Hub-Signature-256", value).send().await;
        assert_eq!(answer.problem(), problem(401, "signature_invalid"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_secrets_verify_while_one_is_rotated_out() {
    let api = with(github("gh")).await;
    let rotate = api.post("/v1/sources/gh/secrets/rotate");
    let rotated = rotate.json(&json!({"secret": "the new one"})).send().await;
    assert_eq!(rotated.status, 200, "{rotated:?}");
    nothing_told(&sent(&api, "/in/gh", "d-1", b"{}").send().await);
    let new = sent(&api, "/in/gh", "d-2", b"{}").without("X-Hub-Signature-256");
    let signature = format!("sha256={}", hex(&mac("the new one", &[b"{}"])));
    nothing_told(&new.header("X-Hub-Signature-256", signature).send().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn slack_and_meta_get_their_challenges_back() {
    let slack = json!({"id": "slack", "scheme": {"type": "slack"}, "secret": "slack secret"});
    let api = with(slack).await;
    let body = br#"{"type":"url_verification","challenge":"3eZbrw1a"}"#;
    let at = time::OffsetDateTime::now_utc().unix_timestamp().to_string();
    let signature = hex(&mac("slack secret", &[b"v0:", at.as_bytes(), b":", body]));
    let asked = api.post("/in/slack").without("Authorization").body(body);
    let asked = asked.header("X-Slack-Request-Timestamp", &at);
    let unsigned = asked.clone().send().await;
    assert_eq!(unsigned.problem(), problem(401, "signature_invalid"));
    let answer = asked.header("X-Slack-Signature", format!("v0={signature}")).send().await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"3eZbrw1a"[..]));
    assert!(api.submissions().await.is_empty(), "a question is no event");

    create(
        &api,
        json!({
            "id": "meta", "secret": "app secret",
            "scheme": {"type": "meta", "verify_token": "meatyhamhock"},
        }),
    )
    .await;
    let query = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=";
    let ask = |path: &str, token: &str| {
        api.get(&format!("{path}?{query}{token}")).without("Authorization")
    };
    let answer = ask("/in/meta", "meatyhamhock").send().await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"1158201444"[..]));
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    for (path, status, code) in [
        ("/in/meta", 401, "signature_invalid"),
        ("/in/slack", 401, "signature_invalid"),
        ("/in/nobody", 404, "source_not_found"),
    ] {
        assert_eq!(ask(path, "wrong").send().await.problem(), problem(status, code));
    }
}

/// Case C118: the URL that Twilio signed is the configured base and the target as it came.
#[tokio::test(flavor = "multi_thread")]
async fn a_twilio_callback_verifies_behind_a_proxy_that_ends_tls() {
    let scheme = json!({"type": "twilio", "public_base": "https://hooks.example.com"});
    let api = with(json!({"id": "twilio", "scheme": scheme, "secret": "tw_test_token"})).await;
    let target = "/in/twilio?Retry=1&Digits=1&Msg=Couldn%27t+find";
    let callback = |target: &str| {
        api.post(target)
            .without("Authorization")
            .header("Content-Type", "application/x-www-form-urlencoded")
            .header("X-Twilio-Signature", "EuIBcJ5bINgDnmlm0o+L3YHn1Bg=")
            .header("X-Forwarded-Host", "evil.example")
            .body("From=%2B15550000000&Body=hi")
    };
    nothing_told(&callback(target).send().await);
    let sorted = "/in/twilio?Digits=1&Msg=Couldn%27t+find&Retry=1";
    let answer = callback(sorted).send().await;
    assert_eq!(answer.problem(), problem(401, "signature_invalid"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_with_a_password_is_asked_for_it() {
    let api =
        with(json!({"id": "b", "scheme": {"type": "basic_auth"}, "secret": "user:pass"})).await;
    let request = api.post("/in/b").without("Authorization").body("x");
    let asked = request.clone().send().await;
    assert_eq!(asked.problem(), problem(401, "signature_invalid"));
    assert_eq!(asked.header("www-authenticate"), Some("Basic realm=\"events\""));
    nothing_told(&request.header("Authorization", "Basic dXNlcjpwYXNz").send().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_takes_no_more_events_than_submissions() {
    let api = Api::start().await;
    let limit = domain::rate_limit::RateLimit::new(1, Duration::from_hours(24)).unwrap();
    api.store_endpoint(DEFAULT_APPLICATION_KEY, "orders", |draft| draft.ingest_rate = limit).await;
    create(&api, github("gh")).await;
    nothing_told(&sent(&api, "/in/gh", "d-1", b"{}").send().await);
    let answer = sent(&api, "/in/gh", "d-2", b"{}").send().await;
    assert_eq!(answer.problem(), problem(429, "rate_limited"));
    assert!(answer.header("retry-after").is_some());
}
