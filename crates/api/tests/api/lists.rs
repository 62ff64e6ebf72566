//! Lists and their parameters.

use serde_json::{Value, json};

use crate::harness::{Api, problem};

const LISTS: [&str; 3] = ["/v1/endpoints", "/v1/submissions", "/v1/deliveries"];

fn ids(list: &Value) -> Vec<String> {
    let rows = list["data"].as_array().unwrap();
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_newest_first_and_as_long_as_was_asked_for() {
    let api = Api::start().await;
    let mut submitted = Vec::new();
    api.create_endpoint("orders").await;
    for _ in 0..3 {
        let accepted = api.submit("orders").body("x").send().await.json();
        submitted.push(accepted["submission_id"].as_str().unwrap().to_owned());
    }
    submitted.sort();
    submitted.reverse();
    assert_eq!(ids(&api.get("/v1/submissions").send().await.json()), submitted);
    let two = ids(&api.get("/v1/submissions?limit=2").send().await.json());
    assert_eq!(two, submitted[..2]);
    assert_eq!(ids(&api.get("/v1/deliveries?limit=250").send().await.json()).len(), 3);
    assert_eq!(ids(&api.get("/v1/endpoints?limit=1").send().await.json()), ["orders"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_narrowed_to_an_endpoint_and_to_a_state() {
    let api = Api::start().await;
    for id in ["orders", "invoices"] {
        api.create_endpoint(id).await;
        api.submit(id).body("x").send().await;
    }
    for list in ["/v1/submissions", "/v1/deliveries"] {
        let narrowed = api.get(&format!("{list}?endpoint_id=invoices")).send().await.json();
        let rows = narrowed["data"].as_array().unwrap();
        assert_eq!(rows.len(), 1, "{list}");
        assert_eq!(rows[0]["endpoint_id"], "invoices");
    }
    let pending = api.get("/v1/deliveries?state=pending&endpoint_id=orders").send().await.json();
    assert_eq!(ids(&pending).len(), 1);
    let failed = api.get("/v1/deliveries?state=failed").send().await.json();
    assert_eq!(failed, json!({"data": [], "next_cursor": null}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_out_of_range_or_unknown_is_named() {
    let api = Api::start().await;
    for list in LISTS {
        for limit in ["0", "251", "x", "", "-1", "1.5"] {
            let answer = api.get(&format!("{list}?limit={limit}")).send().await;
            assert_eq!(answer.problem(), problem(422, "query_invalid"), "{list} {limit}");
            let error = answer.json()["errors"][0].clone();
            assert_eq!(error["field"], "limit");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("1 to 250"), "{message}");
        }
        for unknown in ["offset=1", "LIMIT=1", "limit=1&limit=2"] {
            let answer = api.get(&format!("{list}?{unknown}")).send().await;
            assert_eq!(answer.problem(), problem(422, "query_invalid"), "{list} {unknown}");
        }
    }
    let answer = api.get("/v1/deliveries?state=lost").send().await;
    assert_eq!(answer.errors(), [("state".to_owned(), "state_unknown".to_owned())]);
    let answer = api.get("/v1/deliveries?endpoint_id=Orders").send().await;
    assert_eq!(answer.errors(), [("endpoint_id".to_owned(), "id_malformed".to_owned())]);
    let answer = api.get("/v1/deliveries?endpoint_id=nothing").send().await;
    assert_eq!(answer.problem(), problem(404, "endpoint_not_found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_no_parameter_refuses_every_one() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    for request in [
        api.get("/v1/endpoints/orders?x=1"),
        api.post("/v1/endpoints?x=1").json(&json!({"url": "https://example.com/hook"})),
        api.post("/v1/endpoints/orders/submissions?idempotency_key=k").body("x"),
    ] {
        assert_eq!(request.send().await.problem(), problem(422, "query_invalid"));
    }
    assert!(api.submissions().await.is_empty());
}

/// All ids of a list, part by part, and how many parts there were.
async fn walk(api: &Api, list: &str) -> (Vec<String>, usize) {
    let (mut all, mut parts, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let answer = api.get(&format!("{list}{cursor}")).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let part = answer.json();
        all.extend(ids(&part));
        parts += 1;
        match part["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (all, parts),
        }
        assert!(parts < 1_000, "{list} has no end");
    }
}

/// Case C087: the ids of one list may all be of one millisecond.
#[tokio::test(flavor = "multi_thread")]
async fn every_row_is_told_once_and_the_last_part_has_no_cursor() {
    let api = Api::start().await;
    for id in ["a", "b", "c", "d"] {
        api.create_endpoint(id).await;
        api.submit(id).body("x").send().await;
    }
    for list in LISTS {
        let (whole, _) = walk(&api, &format!("{list}?limit=250")).await;
        assert_eq!(whole.len(), 4);
        for (limit, parts) in [(1, 4), (2, 2), (3, 2), (4, 1), (5, 1)] {
            let walked = walk(&api, &format!("{list}?limit={limit}")).await;
            assert_eq!(walked, (whole.clone(), parts), "{list} {limit}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_of_another_list_or_filter_is_refused() {
    let api = Api::start().await;
    for id in ["a", "b"] {
        api.create_endpoint(id).await;
        api.submit(id).body("x").send().await;
        api.submit(id).body("x").send().await;
    }
    let first = api.get("/v1/deliveries?limit=1&state=pending").send().await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let with = |list: &str| api.get(&format!("{list}cursor={cursor}"));
    assert_eq!(with("/v1/deliveries?state=pending&limit=7&").send().await.status, 200);
    for list in [
        "/v1/deliveries?",
        "/v1/deliveries?state=failed&",
        "/v1/deliveries?state=pending&endpoint_id=a&",
        "/v1/deliveries?state=pending&created_after=2026-01-01T00:00:00Z&",
        "/v1/submissions?",
        "/v1/endpoints?",
    ] {
        let answer = with(list).send().await;
        assert_eq!(answer.problem(), problem(422, "cursor_invalid"), "{list}");
    }
    for list in LISTS {
        for cursor in ["", "x", "AAAA", &cursor[1..], &format!("{cursor}%20")] {
            let answer = api.get(&format!("{list}?cursor={cursor}")).send().await;
            assert_eq!(answer.errors(), [("cursor".to_owned(), "cursor_malformed".to_owned())]);
        }
    }
}

/// Cases C100 and C101.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_narrowed_to_a_time_whose_end_is_left_out() {
    let api = Api::start().await;
    api.create_endpoint("orders").await;
    let accepted = api.submit("orders").body("x").send().await.json();
    let id: uuid::Uuid = accepted["submission_id"].as_str().unwrap().parse().unwrap();
    let millis = id.as_u128() >> 80;
    let at = |millis: u128| {
        let at =
            time::OffsetDateTime::from_unix_timestamp_nanos((millis * 1_000_000).cast_signed());
        let there = at.unwrap().to_offset(time::macros::offset!(+05:30));
        let text = there.format(&time::format_description::well_known::Rfc3339).unwrap();
        text.replace('+', "%2B")
    };
    for list in ["/v1/submissions", "/v1/deliveries"] {
        for (query, found) in [
            (format!("created_after={}", at(millis)), 1),
            (format!("created_after={}", at(millis + 1)), 0),
            (format!("created_before={}", at(millis)), 0),
            (format!("created_before={}", at(millis + 1)), 1),
            (format!("created_after={}&created_before={}", at(millis), at(millis + 1)), 1),
            (format!("created_after={}&created_before={}", at(millis + 1), at(millis)), 0),
        ] {
            let rows = api.get(&format!("{list}?{query}")).send().await.json();
            assert_eq!(ids(&rows).len(), found, "{list}?{query}");
        }
        let answer = api.get(&format!("{list}?created_after=yesterday")).send().await;
        assert_eq!(answer.errors(), [("created_after".to_owned(), "instant_malformed".to_owned())]);
    }
}
