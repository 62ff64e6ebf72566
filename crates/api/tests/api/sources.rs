//! Sources: created, changed, rotated and deleted.

use serde_json::{Value, json};
use store::api_key::Role;

use crate::harness::{Api, create_application, create_key, problem};

async fn api() -> Api {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    api
}

fn github(id: &str) -> Value {
    json!({"id": id, "endpoint_id": "orders", "scheme": {"type": "github"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_shows_the_secret_that_was_made_once_and_none_that_was_given() {
    let api = api().await;
    let made = api.post("/v1/sources").json(&github("made")).send().await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.header("location"), Some("/v1/sources/made"));
    let made = made.json();
    assert_eq!(made["secret"].as_str().unwrap().len(), 64);
    assert_eq!(made["path"], "/in/made");
    assert_eq!(made["event_id"], json!({"header": "x-github-delivery"}));
    assert_eq!(made["scheme"], json!({"type": "github", "legacy_sha1": false}));

    let mut given = github("given");
    given["secret"] = json!("it is mine");
    let given = api.post("/v1/sources").json(&given).send().await;
    assert_eq!((given.status, given.json().get("secret")), (201, None));
    for path in ["/v1/sources/made", "/v1/sources"] {
        let shown = api.get(path).send().await;
        let text = String::from_utf8(shown.body).unwrap();
        assert!(!text.contains("secret") && !text.contains("it is mine"), "{text}");
    }
    let listed = api.get("/v1/sources").send().await.json();
    assert_eq!(
        (&listed["data"][0]["id"], &listed["data"][1]["id"]),
        (&"given".into(), &"made".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_source_is_named_field_by_field() {
    let api = api().await;
    let stripe = json!({"type": "stripe"});
    for (body, field, code) in [
        (json!({"endpoint_id": "orders"}), "scheme", "field_missing"),
        (json!({"scheme": stripe}), "endpoint_id", "field_missing"),
        (json!({"endpoint_id": "orders", "scheme": stripe}), "secret", "field_missing"),
        (json!({"endpoint_id": "orders", "scheme": {"type": "x"}}), "scheme", "scheme_malformed"),
        (
            json!({"endpoint_id": "orders", "scheme": {"type": "github", "x": 1}}),
            "scheme",
            "scheme_malformed",
        ),
        (
            json!({"endpoint_id": "orders", "scheme": stripe, "secret": "pasted\n"}),
            "secret",
            "secret_malformed",
        ),
        (
            json!({"endpoint_id": "orders", "scheme": {"type": "github"}, "event_id": "id"}),
            "event_id",
            "event_id_malformed",
        ),
        (
            json!({"endpoint_id": "orders", "scheme": {"type": "github"}, "headers": ["Cookie"]}),
            "headers",
            "header_names_malformed",
        ),
        (
            json!({"endpoint_id": "orders", "scheme": {"type": "github"}, "secert": "x"}),
            "secert",
            "field_unknown",
        ),
    ] {
        let answer = api.post("/v1/sources").json(&body).send().await;
        assert_eq!(answer.problem(), problem(422, "body_invalid"), "{body}");
        assert_eq!(answer.errors(), [(field.to_owned(), code.to_owned())], "{body}");
    }
    let mut missing = github("gh");
    missing["endpoint_id"] = json!("nowhere");
    let answer = api.post("/v1/sources").json(&missing).send().await;
    assert_eq!(answer.problem(), problem(404, "endpoint_not_found"));
    assert_eq!(api.post("/v1/sources").json(&github("gh")).send().await.status, 201);
    let again = api.post("/v1/sources").json(&github("gh")).send().await;
    assert_eq!(again.problem(), problem(409, "source_id_taken"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_replaces_settings_and_never_the_type_of_a_scheme() {
    let api = api().await;
    api.post("/v1/sources").json(&github("gh")).send().await;
    let patch = |body: Value| api.request("PATCH", "/v1/sources/gh").json(&body);
    let changed = patch(json!({
        "name": "ours",
        "scheme": {"type": "github", "legacy_sha1": true},
        "event_id": {"pointer": "/id"},
        "headers": ["X-GitHub-Event"],
    }));
    let changed = changed.send().await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let changed = changed.json();
    assert_eq!((&changed["name"], &changed["version"]), (&"ours".into(), &2.into()));
    assert_eq!(changed["scheme"]["legacy_sha1"], true);
    assert_eq!(changed["event_id"], json!({"pointer": "/id"}));
    assert_eq!(changed["headers"], json!(["x-github-event"]));
    let back = patch(json!({"event_id": null})).send().await.json();
    assert_eq!(back["event_id"], json!({"header": "x-github-delivery"}));

    let other = patch(json!({"scheme": {"type": "stripe"}})).send().await;
    assert_eq!(other.errors(), [("scheme".to_owned(), "scheme_type_fixed".to_owned())]);
    let secret = patch(json!({"secret": "x"})).send().await;
    assert_eq!(secret.errors(), [("secret".to_owned(), "field_read_only".to_owned())]);
    let gone = api.request("DELETE", "/v1/sources/gh").send().await;
    assert_eq!(gone.status, 204);
    assert_eq!(patch(json!({})).send().await.problem(), problem(404, "source_not_found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_a_sender_shows_is_never_shown_again() {
    let api = api().await;
    let meta = json!({
        "id": "meta", "endpoint_id": "orders", "secret": "app secret",
        "scheme": {"type": "meta", "verify_token": "meatyhamhock"},
    });
    let created = api.post("/v1/sources").json(&meta).send().await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.json()["scheme"], json!({"type": "meta", "verify_token": "***"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_secret_is_made_or_given_and_at_most_ten_are_live() {
    let api = api().await;
    api.post("/v1/sources").json(&github("gh")).send().await;
    let rotate = |body: Value| api.post("/v1/sources/gh/secrets/rotate").json(&body);
    let made = rotate(json!({"overlap": "1h"})).send().await;
    assert_eq!(made.status, 200, "{made:?}");
    assert_eq!(made.json()["secret"].as_str().unwrap().len(), 64);
    let given = rotate(json!({"secret": "mine now"})).send().await.json();
    assert_eq!((given.get("secret"), &given["version"]), (None, &3.into()));
    for _ in 0..7 {
        assert_eq!(rotate(json!({})).send().await.status, 200);
    }
    let eleventh = rotate(json!({})).send().await;
    assert_eq!(eleventh.problem(), problem(409, "too_many_live_secrets"));
    assert_eq!(rotate(json!({"overlap": "0s"})).send().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_of_another_application_has_a_path_of_its_own() {
    let api = api().await;
    let shop = create_application(&api, "shop").await;
    let key = create_key(api.store.as_ref(), Role::Admin, Some(shop)).await;
    api.store_endpoint(shop, "orders", |_| {}).await;
    let created = api.post("/v1/sources").key(&key).json(&github("gh")).send().await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.json()["path"], "/in/shop/gh");
}
