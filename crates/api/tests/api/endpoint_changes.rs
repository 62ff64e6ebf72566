//! Endpoints: every setting with its limits, changed, paused, enabled, pinged and deleted.

use domain::signing::{EndpointSecret, SigningSecret};
use serde_json::{Value, json};

use crate::harness::{Answer, Api, create_key, problem};

async fn patch(api: &Api, id: &str, body: &Value) -> Answer {
    api.request("PATCH", &format!("/v1/endpoints/{id}")).json(body).send().await
}

/// The endpoint as it is read, without the key that only this call shows.
async fn read(api: &Api, id: &str) -> Value {
    let mut endpoint = api.get(&format!("/v1/endpoints/{id}")).send().await.json();
    endpoint.as_object_mut().unwrap().remove("public_key").unwrap();
    endpoint
}

fn with(members: &Value, more: &[(&str, Value)]) -> Value {
    let mut all = members.clone();
    for (name, value) in more {
        all[*name] = value.clone();
    }
    all
}

/// A certificate that may vouch for a receiver.
const CA: &str = include_str!("../../../domain/tests/ca_certificate.pem");

/// Every setting, none with its default.
fn settings() -> Value {
    json!({
        "name": "Orders",
        "event_types": ["user.*", "order.paid"],
        "headers": {"Authorization": "Bearer hunter2", "X-Team": "a"},
        "deadline": "20s",
        "connect_deadline": "1500ms",
        "retry_schedule": ["0s", "90s", "7d"],
        "overload_floor": "0ms",
        "final_statuses": [422, 404, 404],
        "in_flight_max": 1000,
        "delivery_rate": {"limit": 5, "window": "1s"},
        "ingest_rate": {"limit": 1_000_000, "window": "24h"},
        "signing": "v1",
        "public_ingest": true,
        "only_networks": ["203.0.113.0/24", "2001:DB8::/32"],
        "ca_certificates": format!("the CA of the receiver\n{CA}"),
        "circuit_breaker": false,
    })
}

/// The same as they are answered.
fn settings_shown() -> Value {
    with(
        &settings(),
        &[
            ("headers", json!({"authorization": "***", "x-team": "***"})),
            ("retry_schedule", json!(["0s", "90s", "7d"])),
            ("overload_floor", json!("0s")),
            ("final_statuses", json!([404, 422])),
            ("only_networks", json!(["203.0.113.0/24", "2001:db8::/32"])),
            ("ca_certificates", json!(CA)),
            ("ingest_rate", json!({"limit": 1_000_000, "window": "1d"})),
        ],
    )
}

fn assert_shown(endpoint: &Value, expected: &Value) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&endpoint[name], value, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_setting_can_be_given_at_creation_and_by_a_change_and_is_shown() {
    let api = Api::start().await;
    let body = with(&settings(), &[("id", json!("a")), ("url", json!("https://example.com/"))]);
    let created = api.post("/v1/endpoints").json(&body).send().await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_shown(&created.json(), &settings_shown());
    assert!(!format!("{created:?}").contains("hunter2"));
    let read_a = read(&api, "a").await;
    assert_shown(&read_a, &settings_shown());
    assert_eq!(read_a["version"], 1);

    let defaults = api.create_endpoint("b").await;
    assert_shown(
        &defaults,
        &json!({
            "name": null, "event_types": null, "headers": {}, "enabled": true,
            "disabled_cause": null, "disabled_at": null, "failing": null, "paused_until": null,
            "deadline": "15s",
            "connect_deadline": "5s", "overload_floor": "1m", "final_statuses": [],
            "retry_schedule": ["5s", "5m", "30m", "2h", "5h", "10h", "14h", "20h", "1d"],
            "in_flight_max": 32, "delivery_rate": null, "signing": "v1", "public_ingest": false,
            "only_networks": null, "ca_certificates": null,
            "circuit_breaker": true,
            "circuit": {"state": "closed", "cause": null, "open_since": null, "open_until": null},
            "ingest_rate": {"limit": 600, "window": "1m"}, "version": 1,
        }),
    );
    let changed = patch(&api, "b", &settings()).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_shown(&changed.json(), &with(&settings_shown(), &[("version", json!(2))]));
    assert!(changed.json().get("secret").is_none());
    assert_eq!(read(&api, "b").await, changed.json());

    let cleared = json!({
        "name": null, "event_types": null, "headers": null, "delivery_rate": null,
        "only_networks": null, "ca_certificates": null,
    });
    let answer = patch(&api, "b", &cleared).await.json();
    assert_shown(&answer, &with(&cleared, &[("headers", json!({})), ("deadline", json!("20s"))]));
    let listed = api.get("/v1/endpoints?limit=1").send().await.json();
    assert_eq!(listed["data"][0], answer);
}

/// What breaks a limit: the field, its value, and the rule.
fn broken() -> Vec<(&'static str, Value, &'static str)> {
    let range = "setting_out_of_range";
    let twenty_one: Value = (0..21).map(|n| (format!("x-{n}"), json!("v"))).collect();
    let rate = |limit: Value, window: &str| json!({"limit": limit, "window": window});
    vec![
        ("name", json!("n".repeat(201)), range),
        ("name", json!(7), "field_not_text"),
        ("event_types", json!([]), "event_types_empty"),
        ("event_types", json!([""]), "event_type_pattern_malformed"),
        ("event_types", json!(["*"]), "event_type_pattern_malformed"),
        ("event_types", json!(["user.**"]), "event_type_pattern_malformed"),
        ("event_types", json!(["a", "a"]), "event_type_pattern_repeated"),
        ("event_types", json!("a"), "field_not_list"),
        ("event_types", json!([1]), "field_not_text"),
        ("event_types", (0..101).map(|n| json!(format!("e{n}"))).collect(), "event_types_too_many"),
        ("headers", json!({"Webhook-Signature": "v1,AAAA"}), "header_reserved"),
        ("headers", json!({"content-type": "text/plain"}), "header_reserved"),
        ("headers", json!({"Host": "internal"}), "header_reserved"),
        ("headers", json!({"Connection": "close"}), "header_reserved"),
        ("headers", json!({"x": "***"}), "header_value_redacted"),
        ("headers", json!({"x": null}), "field_not_text"),
        ("headers", json!({"x": "a\r\ny: z"}), "header_value_malformed"),
        ("headers", json!({"x y": "a"}), "header_name_malformed"),
        ("headers", json!({"x": "a", "X": "b"}), "header_repeated"),
        ("headers", twenty_one, "headers_too_many"),
        ("headers", json!(["x"]), "field_not_object"),
        ("deadline", json!("99ms"), range),
        ("deadline", json!("30001ms"), range),
        ("deadline", json!(15), "duration_malformed"),
        ("deadline", json!("15"), "duration_malformed"),
        ("deadline", json!("1.5s"), "duration_malformed"),
        ("deadline", json!(null), "field_not_nullable"),
        ("deadline", json!("4s"), range),
        ("connect_deadline", json!("99ms"), range),
        ("connect_deadline", json!("15001ms"), range),
        ("retry_schedule", json!([]), range),
        ("retry_schedule", json!(vec!["1s"; 31]), range),
        ("retry_schedule", json!(["8d"]), range),
        ("retry_schedule", json!(["soon"]), "duration_malformed"),
        ("overload_floor", json!("25h"), range),
        ("final_statuses", json!([299]), range),
        ("final_statuses", json!([600]), range),
        ("final_statuses", json!(["404"]), range),
        ("in_flight_max", json!(0), range),
        ("in_flight_max", json!(1001), range),
        ("in_flight_max", json!(65_568), range),
        ("in_flight_max", json!(1.5), range),
        ("delivery_rate", rate(json!(0), "1s"), range),
        ("delivery_rate", rate(json!(1_000_001), "1s"), range),
        ("delivery_rate", rate(json!(4_294_967_297_u64), "1s"), range),
        ("delivery_rate", rate(json!(1), "999ms"), range),
        ("delivery_rate", rate(json!(1), "25h"), range),
        ("delivery_rate", rate(json!("1"), "1s"), "rate_malformed"),
        ("delivery_rate", json!({"limit": 1}), "rate_malformed"),
        ("delivery_rate", json!({"limit": 1, "window": "1s", "burst": 2}), "rate_malformed"),
        ("delivery_rate", json!(5), "rate_malformed"),
        ("ingest_rate", rate(json!(0), "1s"), range),
        ("ingest_rate", json!(null), "field_not_nullable"),
        ("signing", json!("v2"), "signing_unknown"),
        ("signing", json!(null), "field_not_nullable"),
        ("public_ingest", json!("yes"), "field_not_boolean"),
        ("public_ingest", json!(null), "field_not_nullable"),
        ("only_networks", json!([]), "only_networks_empty"),
        ("only_networks", json!(vec!["10.0.0.0/8"; 33]), "only_networks_too_many"),
        ("only_networks", json!(["10.0.0.1"]), "network_malformed"),
        ("only_networks", json!(["10.0.0.1/8"]), "network_malformed"),
        ("only_networks", json!([7]), "field_not_text"),
        ("only_networks", json!("10.0.0.0/8"), "field_not_list"),
        ("ca_certificates", json!(""), "ca_certificates_empty"),
        ("ca_certificates", json!(CA.repeat(9)), "ca_certificates_too_many"),
        ("ca_certificates", json!(" ".repeat(16_385)), "ca_certificates_too_long"),
        ("ca_certificates", json!([CA]), "field_not_text"),
        (
            "ca_certificates",
            json!(CA.replace("CERTIFICATE", "PRIVATE KEY")),
            "ca_certificates_not_only_certificates",
        ),
        ("circuit_breaker", json!("off"), "field_not_boolean"),
        ("urll", json!(1), "field_unknown"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_setting_outside_its_limits_is_named_and_nothing_is_changed() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let before = read(&api, "orders").await;
    for (field, value, rule) in broken() {
        let expected = [(field.to_owned(), rule.to_owned())];
        let change = json!({field: value});
        let answer = patch(&api, "orders", &change).await;
        assert_eq!(answer.problem(), problem(422, "body_invalid"), "{change}");
        assert_eq!(answer.errors(), expected, "{change}");
        let new = with(&change, &[("url", json!("https://example.com/"))]);
        let answer = api.post("/v1/endpoints").json(&new).send().await;
        assert_eq!(answer.errors(), expected, "{new}");
    }
    assert_eq!(read(&api, "orders").await, before);
    let listed = api.get("/v1/endpoints").send().await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
}

/// Case C084.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_never_touches_the_secret_and_refuses_what_is_only_read() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let before = read(&api, "orders").await;
    for value in
        [json!(null), json!(""), json!("***"), json!("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX")]
    {
        let answer = patch(&api, "orders", &json!({"secret": value})).await;
        assert_eq!(answer.errors(), [("secret".to_owned(), "field_read_only".to_owned())]);
    }
    let answer = patch(&api, "orders", &before).await;
    let mut refused: Vec<_> = answer.errors().into_iter().map(|(field, _)| field).collect();
    refused.sort_unstable();
    assert_eq!(
        refused,
        [
            "circuit",
            "created_at",
            "disabled_at",
            "disabled_cause",
            "failing",
            "id",
            "paused_until",
            "updated_at",
            "version"
        ]
    );
    let unchanged = patch(&api, "orders", &json!({})).await;
    assert_eq!((unchanged.status, unchanged.json()), (200, before.clone()));
    let answer = patch(&api, "orders", &json!({"url": null})).await;
    assert_eq!(answer.errors(), [("url".to_owned(), "field_not_nullable".to_owned())]);
    let same = patch(&api, "orders", &json!({"url": "HTTPS://example.com:443/hook"})).await.json();
    assert_eq!((&same["url"], same.get("secret")), (&before["url"], None));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_url_shows_a_new_secret_once() {
    let api = Api::start().await;
    let old = api.create_endpoint("orders").await["secret"].clone();
    let other = json!({"url": "https://example.org/hook"});
    let answer = patch(&api, "orders", &other).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let secret = answer.json()["secret"].clone();
    assert_ne!(secret, old);
    let secret = SigningSecret::parse(secret.as_str().unwrap()).unwrap();
    assert_eq!(answer.json()["url"], "https://example.org/hook");
    assert!(read(&api, "orders").await.get("secret").is_none());
    assert!(patch(&api, "orders", &other).await.json().get("secret").is_none());

    let id = domain::id::PublicId::parse("orders").unwrap();
    let application = domain::application::DEFAULT_APPLICATION_KEY;
    let key = api.store.find_endpoint(application, &id).await.unwrap().unwrap().key;
    let live = api.store.read_targets(&[key]).await.unwrap().remove(0).secrets.unwrap();
    let live: Vec<_> = live.iter().map(EndpointSecret::expose_bytes).collect();
    assert_eq!(live, [secret.expose_bytes()], "it is the only one");

    for (url, rule) in
        [("http://127.0.0.1/", "address_refused"), ("http://[::1]/", "address_refused")]
    {
        let answer = patch(&api, "orders", &json!({"url": url})).await;
        assert_eq!(answer.errors(), [("url".to_owned(), rule.to_owned())]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_disabled_paused_and_enabled() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let disabled = patch(&api, "orders", &json!({"enabled": false})).await.json();
    assert_shown(&disabled, &json!({"enabled": false, "disabled_cause": "operator"}));
    assert_eq!(api.submit("orders").body("x").send().await.status, 202, "it is held");
    let pause = |body: Option<Value>| {
        let request = api.post("/v1/endpoints/orders/pause");
        let request = body.map_or(request.clone(), |body| request.json(&body));
        async move { request.send().await }
    };
    for body in [None, Some(json!({}))] {
        let paused = pause(body).await;
        assert_eq!(paused.status, 200, "{paused:?}");
        assert_eq!(paused.json()["paused_until"], "9999-12-31T23:59:59.000000Z");
    }
    let until = "2999-12-01T06:00:00.000000Z";
    let paused = pause(Some(json!({"until": "2999-12-01T07:00:00+01:00"}))).await.json();
    assert_eq!(paused["paused_until"], until);
    assert_eq!(read(&api, "orders").await["paused_until"], until);
    let paused = pause(Some(json!({"for": "10m"}))).await.json();
    assert!(paused["paused_until"].as_str().unwrap() < until);
    for (body, field, rule) in [
        (json!({"for": "367d"}), "for", "setting_out_of_range"),
        (json!({"for": 600}), "for", "duration_malformed"),
        (json!({"until": "tomorrow"}), "until", "instant_malformed"),
        (json!({"until": "1969-12-31T23:59:59Z"}), "until", "instant_malformed"),
        (json!({"until": null}), "until", "field_not_nullable"),
        (json!({"until": until, "for": "10m"}), "until", "field_excluded"),
        (json!({"untill": until}), "untill", "field_unknown"),
    ] {
        let answer = pause(Some(body.clone())).await;
        assert_eq!(answer.errors(), [(field.to_owned(), rule.to_owned())], "{body}");
    }
    let text = api.post("/v1/endpoints/orders/pause").header("Content-Type", "text/plain");
    let answer = text.body("now").send().await;
    assert_eq!(answer.problem(), problem(415, "content_type_unsupported"));
    let enabled = api.post("/v1/endpoints/orders/enable").send().await.json();
    let expected = json!({"enabled": true, "disabled_cause": null, "paused_until": null});
    assert_shown(&enabled, &expected);
    assert_eq!(read(&api, "orders").await, enabled);
    let answer = api.post("/v1/endpoints/orders/enable").json(&json!({"x": 1})).send().await;
    assert_eq!(answer.errors(), [("x".to_owned(), "field_unknown".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ping_is_a_submission_of_ours() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let key = create_key(api.store.as_ref(), store::api_key::Role::Publish, None).await;
    let ping = api.post("/v1/endpoints/orders/ping").key(&key).header("Idempotency-Key", "p");
    let first = ping.send().await;
    assert_eq!(first.status, 202, "{first:?}");
    assert_eq!(
        (&first.json()["endpoint_id"], &first.json()["replayed"]),
        (&json!("orders"), &json!(false))
    );
    let again = ping.send().await.json();
    assert_eq!(
        (&again["submission_id"], &again["replayed"]),
        (&first.json()["submission_id"], &json!(true))
    );
    let stored = api.submissions().await;
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].event_type.as_deref(), Some("fencepost.ping"));
    assert_eq!(stored[0].content_type, "application/json");
    let path =
        format!("/v1/submissions/{}/payload", first.json()["submission_id"].as_str().unwrap());
    let payload = api.get(&path).send().await;
    let expected = json!({"type": "fencepost.ping", "data": {"endpoint_id": "orders"}});
    assert_eq!(payload.json(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_endpoint_is_gone_at_once_and_for_every_call() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    api.submit("orders").body("x").send().await;
    let delete = api.request("DELETE", "/v1/endpoints/orders");
    let answer = delete.send().await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    let missing = problem(404, "endpoint_not_found");
    assert_eq!(delete.send().await.problem(), missing);
    assert_eq!(api.get("/v1/endpoints/orders").send().await.problem(), missing);
    assert_eq!(patch(&api, "orders", &json!({"enabled": true})).await.problem(), missing);
    assert_eq!(api.submit("orders").body("x").send().await.problem(), missing);
    for call in ["pause", "enable", "ping"] {
        let answer = api.post(&format!("/v1/endpoints/orders/{call}")).send().await;
        assert_eq!(answer.problem(), missing, "{call}");
    }
    let again = json!({"id": "orders", "url": "https://example.com/"});
    let answer = api.post("/v1/endpoints").json(&again).send().await;
    assert_eq!(answer.problem(), problem(409, "endpoint_id_taken"));
}
