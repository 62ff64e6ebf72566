//! Rate limits as a caller meets them. That they hold across processes is shown in the integration
//! tests.

use std::time::Duration;

use api::{Settings, SourceLimit, SourceSecret};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::rate_limit::RateLimit;
use store::api_key::Role;

use crate::harness::{Answer, Api, create_key, problem, settings};

/// A window that does not end while a test runs, but for one run in a few ten thousands.
fn a_day(units: u32) -> RateLimit {
    RateLimit::new(units, Duration::from_hours(24)).unwrap()
}

fn of_source(units: u32, trusted_hops: u8) -> Settings {
    let secret = SourceSecret::new(&[7; 32]).unwrap();
    let source_limit = Some(SourceLimit { limit: a_day(units), secret, trusted_hops });
    Settings { source_limit, ..settings() }
}

fn assert_limited(answer: &Answer, scope: &str, limit: u32) {
    assert_eq!(answer.problem(), problem(429, "rate_limited"));
    let document = answer.json();
    assert_eq!(document["scope"], scope);
    assert_eq!(document["limit"], limit);
    assert_eq!(document["window_seconds"], 86_400);
    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&seconds), "{seconds}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_takes_its_limit_and_the_next_one_is_told_scope_limit_window_and_wait() {
    let api = Api::start().await;
    api.store_endpoint(DEFAULT_APPLICATION_KEY, "small", |draft| draft.ingest_rate = a_day(3))
        .await;
    api.create_endpoint("other").await;
    for _ in 0..3 {
        assert_eq!(api.submit("small").body("x").send().await.status, 202);
    }
    assert_limited(&api.submit("small").body("x").send().await, "endpoint", 3);
    assert_eq!(api.submit("other").body("x").send().await.status, 202, "a budget of its own");
    assert_eq!(api.submissions().await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_spends_a_replayed_one_and_a_refused_one_too() {
    let api = Api::start().await;
    api.store_endpoint(DEFAULT_APPLICATION_KEY, "small", |draft| draft.ingest_rate = a_day(4))
        .await;
    let keyed = api.submit("small").header("Idempotency-Key", "k").body("x");
    assert_eq!(keyed.send().await.status, 202);
    assert_eq!(keyed.send().await.header("idempotent-replayed"), Some("true"));
    let bad = api.submit("small").header("Content-Type", "application/json").body("{");
    assert_eq!(bad.send().await.problem(), problem(422, "json_malformed"));
    let other = keyed.clone().body("y");
    assert_eq!(other.send().await.problem(), problem(422, "idempotency_key_reused"));
    assert_limited(&keyed.send().await, "endpoint", 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_spends_also_where_no_endpoint_is_and_before_the_endpoint() {
    let api = Api::start_with(of_source(3, 0)).await;
    api.store_endpoint(DEFAULT_APPLICATION_KEY, "small", |draft| draft.ingest_rate = a_day(2))
        .await;
    let missing = api.submit("missing").body("x").send().await;
    assert_eq!(missing.problem(), problem(404, "endpoint_not_found"));
    assert_eq!(api.submit("small").body("x").send().await.status, 202);
    assert_eq!(api.submit("small").body("x").send().await.status, 202);
    assert_limited(&api.submit("small").body("x").send().await, "source", 3);
    assert_limited(&api.submit("missing").body("x").send().await, "source", 3);
    // What is not an ingest route spends nothing.
    assert_eq!(api.get("/v1/endpoints").send().await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_its_limit_is_refused_before_anything_is_spent() {
    let api = Api::start_with(Settings { body_limit_bytes: 10, ..of_source(1, 0) }).await;
    api.create_endpoint("orders").await;
    let large = api.submit("orders").body("more than ten");
    assert_eq!(large.send().await.problem(), problem(413, "body_too_large"));
    assert_eq!(large.send_chunked().await.problem(), problem(413, "body_too_large"));
    assert_eq!(api.submit("orders").body("x").send().await.status, 202);
    assert_eq!(large.send().await.problem(), problem(413, "body_too_large"), "also afterwards");
    assert_limited(&api.submit("orders").body("x").send().await, "source", 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_the_address_that_a_trusted_proxy_names_and_a_forged_one_counts_for_nothing() {
    let api = Api::start_with(of_source(1, 1)).await;
    api.create_endpoint("orders").await;
    let from = |header: &'static str| {
        let request = api.submit("orders").header("X-Forwarded-For", header).body("x");
        async move { request.send().await }
    };
    assert_eq!(from("203.0.113.9").await.status, 202);
    assert_limited(&from("6.6.6.6, 203.0.113.9").await, "source", 1);
    assert_eq!(from("203.0.113.9, 203.0.113.10").await.status, 202);
    assert_eq!(from("2001:db8:1:2::1").await.status, 202);
    assert_limited(&from("2001:db8:1:2:ffff::2").await, "source", 1);
    assert_eq!(from("2001:db8:1:3::1").await.status, 202);

    let untrusting = Api::start_with(of_source(1, 0)).await;
    untrusting.create_endpoint("orders").await;
    let from = |header: &'static str| {
        let request = untrusting.submit("orders").header("X-Forwarded-For", header).body("x");
        async move { request.send().await }
    };
    assert_eq!(from("203.0.113.9").await.status, 202);
    assert_limited(&from("203.0.113.10").await, "source", 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_key_has_a_budget_and_who_has_no_key_spends_none() {
    let api = Api::start_with(Settings { key_limit: Some(a_day(1)), ..settings() }).await;
    api.create_endpoint("orders").await;
    let other = create_key(api.store.as_ref(), Role::Publish, None).await;
    let submit = || api.submit("orders").body("x");
    assert_eq!(submit().key("fp_live_unknown").send().await.status, 401);
    assert_eq!(submit().send().await.status, 202);
    assert_limited(&submit().send().await, "key", 1);
    assert_eq!(submit().key(&other).send().await.status, 202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_at_once_exactly_the_limit_is_taken() {
    let api = Api::start().await;
    api.store_endpoint(DEFAULT_APPLICATION_KEY, "small", |d| d.ingest_rate = a_day(20)).await;
    let sending: Vec<_> = (0..60)
        .map(|_| {
            let request = api.submit("small").body("x");
            tokio::spawn(async move { request.send().await.status })
        })
        .collect();
    let mut statuses = Vec::new();
    for one in sending {
        statuses.push(one.await.unwrap());
    }
    let count = |status| statuses.iter().filter(|s| **s == status).count();
    assert_eq!((count(202), count(429)), (20, 40), "{statuses:?}");
    assert_eq!(api.submissions().await.len(), 20);
}
