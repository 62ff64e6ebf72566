//! Paths, methods, and the headers of every answer.

use uuid::Uuid;

use crate::harness::{Api, problem};

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_path_is_a_404_on_both_addresses() {
    let api = Api::start().await;
    let private = api.running.private_address();
    for path in
        ["/", "/v1", "/v1/nothing", "/v1/endpoints/", "/v1/endpoints/a/b/c", "/V1/endpoints"]
    {
        let answer = api.get(path).send().await;
        assert_eq!(answer.problem(), problem(404, "not_found"), "{path}");
        let answer = api.get(path).to(private).send().await;
        assert_eq!(answer.problem(), problem(404, "not_found"), "{path}");
    }
    // What is for operators is not for callers, and the other way round.
    assert_eq!(api.get("/readyz").send().await.problem(), problem(404, "not_found"));
    let answer = api.get("/v1/endpoints").to(private).send().await;
    assert_eq!(answer.problem(), problem(404, "not_found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_method_is_a_405_that_names_the_right_ones() {
    let api = Api::start().await;
    let id = "0190f5fe-7c00-7a00-8a00-000000000001";
    for (path, allow) in [
        ("/livez".to_owned(), "HEAD, GET"),
        ("/v1/endpoints".to_owned(), "HEAD, GET, POST"),
        ("/v1/endpoints/orders".to_owned(), "HEAD, GET, PATCH, DELETE"),
        ("/v1/endpoints/orders/pause".to_owned(), "POST"),
        ("/v1/endpoints/orders/enable".to_owned(), "POST"),
        ("/v1/endpoints/orders/ping".to_owned(), "POST"),
        ("/v1/endpoints/orders/submissions".to_owned(), "POST"),
        ("/v1/submissions".to_owned(), "HEAD, GET"),
        (format!("/v1/submissions/{id}"), "HEAD, GET"),
        (format!("/v1/submissions/{id}/payload"), "HEAD, GET, DELETE"),
        ("/v1/deliveries".to_owned(), "HEAD, GET"),
        (format!("/v1/deliveries/{id}"), "HEAD, GET"),
        (format!("/v1/deliveries/{id}/cancel"), "POST"),
        (format!("/v1/deliveries/{id}/replay"), "POST"),
        (format!("/v1/deliveries/{id}/resend"), "POST"),
        ("/v1/applications".to_owned(), "HEAD, GET, POST"),
        ("/v1/keys".to_owned(), "HEAD, GET, POST"),
    ] {
        let methods = ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"];
        for method in methods.into_iter().filter(|method| !allow.contains(method)) {
            let answer = api.request(method, &path).send().await;
            assert_eq!(answer.problem(), problem(405, "method_not_allowed"), "{method} {path}");
            assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_a_fresh_request_id_and_is_not_cached() {
    let api = Api::start().await;
    let mut seen = std::collections::BTreeSet::new();
    for path in ["/livez", "/v1/endpoints", "/v1/nothing", "/v1/endpoints?limit=0"] {
        let answer = api.get(path).header("X-Request-Id", "mine").send().await;
        let id = answer.header("x-request-id").unwrap().to_owned();
        assert!(Uuid::parse_str(&id).is_ok(), "{id}");
        assert!(seen.insert(id));
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn head_is_answered_like_get_without_a_body() {
    let api = Api::start().await;
    let request = api.request("HEAD", "/livez");
    let mut stream = request.connect().await;
    let head = request.head("Connection: close\r\n");
    tokio::io::AsyncWriteExt::write_all(&mut stream, &head).await.unwrap();
    let mut answer = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}
