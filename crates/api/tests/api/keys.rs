//! Who may call.

use store::api_key::Role;

use crate::harness::{Api, create_key, problem};

/// Every call under `/v1`. A new route belongs here.
const CALLS: [(&str, &str); 10] = [
    ("POST", "/v1/endpoints"),
    ("GET", "/v1/endpoints"),
    ("GET", "/v1/endpoints/orders"),
    ("POST", "/v1/endpoints/orders/submissions"),
    ("GET", "/v1/submissions"),
    ("GET", "/v1/submissions/0190f5fe-7c00-7a00-8a00-000000000001"),
    ("GET", "/v1/submissions/0190f5fe-7c00-7a00-8a00-000000000001/payload"),
    ("GET", "/v1/deliveries"),
    ("GET", "/v1/deliveries/0190f5fe-7c00-7a00-8a00-000000000001"),
    ("POST", "/v1/deliveries/0190f5fe-7c00-7a00-8a00-000000000001/replay"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_call_needs_a_key() {
    let api = Api::start().await;
    for (method, path) in CALLS {
        let request = api.request(method, path);
        let answer = request.clone().without("Authorization").send().await;
        assert_eq!(answer.problem(), problem(401, "key_missing"), "{method} {path}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));

        let answer = request.clone().key("not-a-key").send().await;
        assert_eq!(answer.problem(), problem(401, "key_missing"), "{method} {path}");

        let answer = request.clone().key(&format!("fp_live_{}", "0".repeat(64))).send().await;
        assert_eq!(answer.problem(), problem(401, "key_unknown"), "{method} {path}");
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("Bearer"), "{challenge}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_is_refused_to_a_key_whose_role_is_not_admin() {
    let api = Api::start().await;
    for role in [Role::Publish, Role::Read] {
        let key = create_key(api.store.as_ref(), role, None).await;
        for (method, path) in CALLS {
            let answer = api.request(method, path).key(&key).send().await;
            assert_eq!(answer.problem(), problem(403, "role_insufficient"), "{method} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_key_is_told_before_anything_about_the_request() {
    let api = Api::start().await;
    for request in [
        api.get("/v1/endpoints?limit=0"),
        api.get("/v1/endpoints/nothing"),
        api.submit("nothing").header("Idempotency-Key", ""),
        api.post("/v1/endpoints").body("{"),
        api.submit("nothing").body(vec![0; 300 * 1024]),
    ] {
        let answer = request.without("Authorization").send().await;
        assert_eq!(answer.problem(), problem(401, "key_missing"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_not_repeated_in_any_answer() {
    let api = Api::start().await;
    let secret = "fp_live_feedfacefeedface";
    for (method, path) in CALLS {
        let answer = api.request(method, path).key(secret).send().await;
        assert!(!format!("{answer:?}").contains("feedface"), "{method} {path}");
    }
}
