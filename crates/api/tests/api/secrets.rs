//! Secrets: rotated, and the public halves read.

use domain::signing::{Ed25519PublicKey, SigningSecret};
use serde_json::{Value, json};

use crate::harness::{Answer, Api, problem};

async fn rotate(api: &Api, id: &str, body: &Value) -> Answer {
    api.post(&format!("/v1/endpoints/{id}/secrets/rotate")).json(body).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_shows_the_new_secret_once_and_when_the_old_one_ends() {
    let api = Api::start().await;
    let created = api.create_endpoint("orders").await;
    let answer = rotate(&api, "orders", &json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let rotated = answer.json();
    let secret = rotated["secret"].as_str().unwrap();
    assert_eq!(SigningSecret::parse(secret).unwrap().expose_bytes().len(), 32);
    assert_ne!(rotated["secret"], created["secret"]);
    assert_eq!((&rotated["id"], &rotated["signing"]), (&json!("orders"), &json!("v1")));
    let day = |text: &Value| text.as_str().unwrap()[..10].to_owned();
    assert!(day(&rotated["retires_at"]) > day(&created["created_at"]), "{rotated}");
    assert_eq!(rotated.get("public_key"), None, "it was not rotated");

    let read = api.get("/v1/endpoints/orders").send().await.json();
    assert!(!read.to_string().contains(&secret[6..]));
    let key = read["public_key"].as_str().unwrap();
    assert!(Ed25519PublicKey::parse(key).is_ok());
    assert_eq!(read["public_key"], created["public_key"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_given_secret_and_overlap_are_taken_and_bad_ones_named_without_repeating_them() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
    let rotated = rotate(&api, "orders", &json!({"secret": secret, "overlap": "0s"})).await.json();
    assert_eq!(rotated["secret"], secret);
    for (body, field, rule) in [
        (json!({"secret": "whsec_AAECAwQF"}), "secret", "secret_malformed"),
        (json!({"secret": "whsk_AAECAwQF"}), "secret", "secret_malformed"),
        (json!({"secret": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"}), "secret", "secret_malformed"),
        (json!({"overlap": "169h"}), "overlap", "setting_out_of_range"),
        (json!({"overlap": "1.5h"}), "overlap", "duration_malformed"),
        (json!({"overlap": 60}), "overlap", "field_not_text"),
        (json!({"overlap_seconds": 60}), "overlap_seconds", "field_unknown"),
    ] {
        let answer = rotate(&api, "orders", &body).await;
        assert_eq!(answer.problem(), problem(422, "body_invalid"), "{body}");
        assert_eq!(answer.errors(), [(field.to_owned(), rule.to_owned())], "{body}");
        assert!(!String::from_utf8_lossy(&answer.body).contains("AAECAwQF"), "{answer:?}");
    }
    let key = domain::signing::Ed25519SecretKey::from_seed(&[7; 32]).reveal();
    let answer = rotate(&api, "orders", &json!({"secret": key})).await;
    assert_eq!(answer.problem(), problem(422, "secret_scheme_unused"));
    let answer = rotate(&api, "nothing", &json!({})).await;
    assert_eq!(answer.problem(), problem(404, "endpoint_not_found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_eleventh_live_secret_is_refused_unless_the_others_end() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    for _ in 1..10 {
        assert_eq!(rotate(&api, "orders", &json!({"overlap": "7d"})).await.status, 200);
    }
    let answer = rotate(&api, "orders", &json!({})).await;
    assert_eq!(answer.problem(), problem(409, "too_many_live_secrets"));
    assert_eq!(rotate(&api, "orders", &json!({"overlap": "0s"})).await.status, 200);
}
