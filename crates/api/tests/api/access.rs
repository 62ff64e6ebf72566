//! Who may make which call: the table of calls, walked. A call that is added is walked too.

use api::DescribedCall;
use serde_json::json;
use store::api_key::Role;

use crate::harness::{Api, Request, create_application, create_key, problem};

/// What anyone may call. Opening a call is a decision, so it is made here as well.
const OPEN: [(&str, &str); 10] = [
    ("GET", "/livez"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/docs/{file}"),
    ("POST", "/f/{endpoint_id}"),
    ("POST", "/f/{application_id}/{endpoint_id}"),
    ("GET", "/in/{source_id}"),
    ("POST", "/in/{source_id}"),
    ("GET", "/in/{application_id}/{source_id}"),
    ("POST", "/in/{application_id}/{source_id}"),
];

/// What each path parameter names, and the code that says that it names nothing. A parameter that is
/// not here fails the tests.
const PARAMETERS: [(&str, &str); 5] = [
    ("{endpoint_id}", "endpoint_not_found"),
    ("{submission_id}", "submission_not_found"),
    ("{delivery_id}", "delivery_not_found"),
    ("{key_id}", "key_not_found"),
    ("{source_id}", "source_not_found"),
];

/// What each parameter stands for: an endpoint of the default application, its submission, the
/// delivery of that, a key bound to that application, and a source of it.
struct Named([String; PARAMETERS.len()]);

impl Named {
    async fn create(api: &Api, endpoint: &str) -> Self {
        api.create_endpoint(endpoint).await;
        let accepted = api.submit(endpoint).body("x").send().await.json();
        let submission = accepted["submission_id"].as_str().unwrap().to_owned();
        let delivery = accepted["delivery_ids"][0].as_str().unwrap().to_owned();
        let body = json!({"name": "k", "role": "read", "application_id": "default"});
        let key = api.post("/v1/keys").json(&body).send().await.json();
        let body = json!({"endpoint_id": endpoint, "scheme": {"type": "github"}});
        let source = api.post("/v1/sources").json(&body).send().await.json();
        let text = |of: &serde_json::Value| of["id"].as_str().unwrap().to_owned();
        Self([endpoint.to_owned(), submission, delivery, text(&key), text(&source)])
    }

    /// The call for these, with a body that brings it as far as its look-up.
    fn request(&self, api: &Api, call: &DescribedCall) -> Request {
        self.request_with(api, call, "")
    }

    fn request_with(&self, api: &Api, call: &DescribedCall, query: &str) -> Request {
        let mut path = call.path.to_owned();
        for ((parameter, _), value) in PARAMETERS.iter().zip(&self.0) {
            path = path.replace(parameter, value);
        }
        assert!(!path.contains('{'), "{path}: PARAMETERS does not know its parameter");
        let request = api.request(&call.method, &(path + query));
        let body = match (call.method.as_str(), call.path) {
            ("GET", _) => return request,
            ("POST", "/v1/endpoints") => json!({"url": "https://example.com/hook"}),
            ("POST", "/v1/applications") => json!({"id": self.0[0], "name": "n"}),
            ("POST", "/v1/sources") => {
                json!({"endpoint_id": self.0[0], "scheme": {"type": "github"}})
            }
            ("POST", "/v1/keys") => json!({"name": "n", "role": "read"}),
            // A call that needs members of its body belongs here.
            _ => json!({}),
        };
        request.json(&body)
    }
}

/// Every call that needs a key, with the least role that may make it.
fn calls_with_a_key() -> Vec<(DescribedCall, Role)> {
    let calls = api::described_calls();
    let calls: Vec<_> = calls.into_iter().filter_map(|c| c.least_role.map(|r| (c, r))).collect();
    assert!(!calls.is_empty());
    calls
}

#[test]
fn a_call_is_once_in_the_table_and_open_to_anyone_only_where_that_was_decided() {
    let calls = api::described_calls();
    let mut seen = std::collections::BTreeSet::new();
    let mut open = Vec::new();
    for call in &calls {
        assert!(seen.insert((&call.method, call.path)), "{call:?} is there twice");
        if call.least_role.is_none() {
            open.push((call.method.as_str(), call.path));
        }
    }
    assert_eq!(open, OPEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_is_answered_without_a_key_that_exists() {
    let api = Api::start().await;
    let named = Named::create(&api, "orders").await;
    for (call, _) in calls_with_a_key() {
        let request = named.request(&api, &call);
        let answer = request.clone().without("Authorization").send().await;
        assert_eq!(answer.problem(), problem(401, "key_missing"), "{call:?}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));

        let answer = request.clone().key("not-a-key").send().await;
        assert_eq!(answer.problem(), problem(401, "key_missing"), "{call:?}");

        let secret = "fp_live_feedfacefeedface";
        let answer = request.clone().key(secret).send().await;
        assert_eq!(answer.problem(), problem(401, "key_unknown"), "{call:?}");
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("Bearer"), "{challenge}");
        assert!(!format!("{answer:?}").contains("feedface"), "{call:?} repeats the key");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_refused_below_its_role_and_answered_from_there_on() {
    let api = Api::start().await;
    let store = api.store.as_ref();
    let mut keys = Vec::new();
    for role in Role::ALL {
        keys.push((role, create_key(store, role, None).await));
    }
    let calls = calls_with_a_key();
    for (number, (call, least)) in calls.iter().enumerate() {
        for (role, key) in &keys {
            // What an answered call changes is its own.
            let named = Named::create(&api, &format!("{}-{number}", role.as_str())).await;
            let answer = named.request(&api, call).key(key).send().await;
            if role.covers(*least) {
                let refused = [401, 403, 404, 405].contains(&answer.status);
                assert!(!refused && answer.status < 500, "{role:?} {call:?} {answer:?}");
            } else {
                assert_eq!(answer.problem(), problem(403, "role_insufficient"), "{call:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_another_application_does_not_exist_for_any_call() {
    let api = Api::start().await;
    let named = Named::create(&api, "orders").await;
    let stranger = create_application(&api, "stranger").await;
    let key = create_key(api.store.as_ref(), Role::Admin, Some(stranger)).await;
    for (call, _) in calls_with_a_key() {
        let named_too = named.request_with(&api, &call, "?application_id=default");
        let answer = named_too.key(&key).send().await;
        assert_eq!(answer.problem(), problem(404, "application_not_found"), "{call:?}");

        let Some((_, code)) = PARAMETERS.iter().find(|(name, _)| call.path.contains(name)) else {
            continue;
        };
        let answer = named.request(&api, &call).key(&key).send().await;
        assert_eq!(answer.problem(), problem(404, code), "{call:?}");
        // Nor for a key of all applications that asks about that other one.
        let answer = named.request_with(&api, &call, "?application_id=stranger").send().await;
        assert_eq!(answer.problem(), problem(404, code), "{call:?}");
    }
}
