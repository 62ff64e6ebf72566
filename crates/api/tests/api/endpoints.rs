//! Endpoints: created, read, and refused.

use domain::signing::SigningSecret;
use serde_json::{Value, json};

use crate::harness::{Api, problem, settings};

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_created_with_a_secret_that_is_shown_once() {
    let api = Api::start().await;
    let body = json!({"id": "orders", "url": "https://EXAMPLE.com:443/hook", "name": "Orders"});
    let answer = api.post("/v1/endpoints").json(&body).send().await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.header("location"), Some("/v1/endpoints/orders"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let created = answer.json();
    let secret = created["secret"].as_str().unwrap();
    assert_eq!(SigningSecret::parse(secret).unwrap().expose_bytes().len(), 32);
    assert_eq!(created["url"], "https://example.com/hook");

    let read = api.get("/v1/endpoints/orders").send().await;
    assert_eq!(read.status, 200);
    let mut expected = created.clone();
    expected.as_object_mut().unwrap().remove("secret");
    assert_eq!(read.json(), expected);
    assert_eq!(
        (&expected["id"], &expected["name"], &expected["enabled"], &expected["disabled_cause"]),
        (&json!("orders"), &json!("Orders"), &json!(true), &Value::Null)
    );
    assert_eq!(expected["created_at"].as_str().unwrap().len(), "2026-01-02T03:04:05.000000Z".len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_without_an_id_gets_one_and_a_given_secret_is_kept() {
    let api = Api::start().await;
    let secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
    let body = json!({"url": "https://example.com/hook", "secret": secret});
    let created = api.post("/v1/endpoints").json(&body).send().await.json();
    assert!(created["id"].as_str().unwrap().starts_with("ep_"));
    assert_eq!(created["secret"], secret);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_can_be_created_disabled_and_holds_what_is_submitted_until_it_is_enabled() {
    let api = Api::start().await;
    let body = json!({"id": "orders", "url": "https://example.com/hook", "enabled": false});
    let answer = api.post("/v1/endpoints").json(&body).send().await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let created = answer.json();
    assert_eq!(
        (&created["enabled"], &created["disabled_cause"], &created["disabled_at"]),
        (&json!(false), &json!("operator"), &created["created_at"])
    );
    let mut expected = created.clone();
    expected.as_object_mut().unwrap().remove("secret");
    assert_eq!(api.get("/v1/endpoints/orders").send().await.json(), expected);
    assert_eq!(api.submit("orders").body("x").send().await.status, 202);

    let body = json!({"url": "https://example.com/hook", "enabled": "no"});
    let refused = api.post("/v1/endpoints").json(&body).send().await;
    assert_eq!(refused.errors(), [("enabled".to_owned(), "field_not_boolean".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_endpoints_with_one_id_the_second_is_refused() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let body = json!({"id": "orders", "url": "https://example.com/other"});
    let answer = api.post("/v1/endpoints").json(&body).send().await;
    assert_eq!(answer.problem(), problem(409, "endpoint_id_taken"));
    let kept = api.get("/v1/endpoints/orders").send().await.json();
    assert_eq!(kept["url"], "https://example.com/hook");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_broken_field_is_named_and_nothing_is_stored() {
    let api = Api::start().await;
    let url = "https://example.com/hook";
    for (body, field, rule) in [
        (json!({}), "url", "field_missing"),
        (json!({"url": null}), "url", "field_not_text"),
        (json!({"url": 7}), "url", "field_not_text"),
        (json!({"url": "ftp://example.com"}), "url", "url_not_http"),
        (json!({"url": "example.com"}), "url", "url_not_http"),
        (json!({"url": "http://127.0.0.1/"}), "url", "address_refused"),
        (json!({"url": "http://2130706433/"}), "url", "address_refused"),
        (json!({"url": "http://0x7f.1/"}), "url", "address_refused"),
        (json!({"url": "http://[::ffff:127.0.0.1]/"}), "url", "address_refused"),
        (json!({"url": "http://169.254.169.254/latest"}), "url", "address_refused"),
        (json!({"url": "http://localhost/"}), "url", "url_host_local"),
        (json!({"url": "https://user:pass@example.com/"}), "url", "url_userinfo"),
        (json!({"url": format!("{url}/{}", "a".repeat(2048))}), "url", "url_too_long"),
        (json!({"url": url, "id": ""}), "id", "id_malformed"),
        (json!({"url": url, "id": "Orders"}), "id", "id_malformed"),
        (json!({"url": url, "id": "a".repeat(65)}), "id", "id_malformed"),
        (json!({"url": url, "name": "n".repeat(201)}), "name", "setting_out_of_range"),
        (json!({"url": url, "secret": ""}), "secret", "secret_malformed"),
        (json!({"url": url, "secret": null}), "secret", "field_not_text"),
        (json!({"url": url, "secret": "***"}), "secret", "secret_malformed"),
        (json!({"url": url, "secret": "whsec_not base64"}), "secret", "secret_malformed"),
        (json!({"url": url, "secret": "whsec_AAECAwQFBgc="}), "secret", "secret_malformed"),
        (json!({"url": url, "urll": 1}), "urll", "field_unknown"),
        (json!({"url": url, "disabled_cause": "gone"}), "disabled_cause", "field_unknown"),
    ] {
        let answer = api.post("/v1/endpoints").json(&body).send().await;
        assert_eq!(answer.problem(), problem(422, "body_invalid"), "{body}");
        assert_eq!(answer.errors(), [(field.to_owned(), rule.to_owned())], "{body}");
    }
    let listed = api.get("/v1/endpoints").send().await.json();
    assert_eq!(listed, json!({"data": [], "next_cursor": null}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_address_is_taken_where_the_policy_allows_it() {
    let mut settings = settings();
    settings.address_policy.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    let api = Api::start_with(settings).await;
    let body = json!({"url": "http://127.0.0.1:3000/hook"});
    assert_eq!(api.post("/v1/endpoints").json(&body).send().await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_declared_or_not_written_as_json_is_refused() {
    let api = Api::start().await;
    let body = json!({"url": "https://example.com/hook"}).to_string();
    for content_type in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"] {
        let request = api.post("/v1/endpoints").header("Content-Type", content_type);
        let answer = request.body(&body).send().await;
        assert_eq!(answer.problem(), problem(415, "content_type_unsupported"), "{content_type}");
    }
    let answer = api.post("/v1/endpoints").body(&body).send().await;
    assert_eq!(answer.problem(), problem(415, "content_type_unsupported"));

    let json = api.post("/v1/endpoints").header("Content-Type", "application/json; charset=utf-8");
    let answer = json.clone().body("{\"url\":\n nope}").send().await;
    assert_eq!(answer.problem(), problem(422, "json_malformed"));
    assert_eq!((&answer.json()["line"], &answer.json()["column"]), (&json!(2), &json!(3)));
    let answer = json.clone().body("[]").send().await;
    assert_eq!(answer.problem(), problem(422, "body_invalid"));
    assert_eq!(json.body(&body).send().await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_id_gets_the_answer_of_an_unknown_one() {
    let api = Api::start().await;
    for id in ["nothing", "Orders", "-a", "a%20b", "%ff", &"a".repeat(65)] {
        let answer = api.get(&format!("/v1/endpoints/{id}")).send().await;
        assert_eq!(answer.problem(), problem(404, "endpoint_not_found"), "{id}");
        let answer = api.submit(id).body("{}").send().await;
        assert_eq!(answer.problem(), problem(404, "endpoint_not_found"), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_of_another_application_does_not_exist() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let other = store::new_id::application_key();
    // An application that was never stored: what matters is that it is not the endpoint's.
    let found = domain::id::PublicId::parse("orders").unwrap();
    assert_eq!(api.store.find_endpoint(other, &found).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_stands_twice_inside_a_field_is_refused_and_nothing_is_created() {
    let api = Api::start().await;
    for (field, value) in [
        ("headers", r#"{"x-a":"one","x-a":"two"}"#),
        ("ingest_rate", r#"{"limit":1,"window":"1s","limit":2}"#),
    ] {
        let body = format!(r#"{{"id":"twice","url":"https://example.com/","{field}":{value}}}"#);
        let request = api.post("/v1/endpoints").header("Content-Type", "application/json");
        let answer = request.body(body).send().await;
        assert_eq!(answer.problem(), problem(422, "body_invalid"));
        assert_eq!(answer.errors(), [(field.to_owned(), "field_repeated".to_owned())]);
    }
    assert_eq!(api.get("/v1/endpoints/twice").send().await.status, 404);
}
