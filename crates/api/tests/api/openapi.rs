//! The OpenAPI document and the page that shows it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::documented::{DOCUMENT, resolve};
use crate::harness::{Api, problem};

/// Every described call: path, method, operation.
fn operations() -> Vec<(&'static str, &'static str, &'static Value)> {
    let paths = DOCUMENT["paths"].as_object().unwrap().iter();
    let all = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    });
    all.collect()
}

#[test]
fn the_table_and_the_document_have_the_same_calls_with_the_same_roles() {
    let table: BTreeSet<_> = api::described_calls()
        .iter()
        .map(|call| {
            let role = call.least_role.map(|role| role.as_str().to_owned());
            (call.path.to_owned(), call.method.to_ascii_lowercase(), role)
        })
        .collect();
    let documented: BTreeSet<_> = operations()
        .into_iter()
        .map(|(path, method, operation)| {
            let role = operation["security"][0]["api_key"][0].as_str().map(str::to_owned);
            (path.to_owned(), method.to_owned(), role)
        })
        .collect();
    assert_eq!(table, documented);
    assert_eq!(DOCUMENT["openapi"], "3.1.0");
    let scheme = &DOCUMENT["components"]["securitySchemes"]["api_key"];
    assert_eq!((&scheme["type"], &scheme["scheme"]), (&"http".into(), &"bearer".into()));
}

#[test]
fn every_code_is_described_and_answered_by_some_call() {
    // Of any path, of any other method, and of the private address.
    let elsewhere = ["method_not_allowed", "not_ready"];
    let mut answered: BTreeSet<&str> = elsewhere.into_iter().collect();
    for (_, _, operation) in operations() {
        for (status, response) in operation["responses"].as_object().unwrap() {
            assert!(!response["description"].as_str().unwrap().is_empty());
            let Some(content) = response["content"].get("application/problem+json") else {
                continue;
            };
            assert!(status.starts_with(['4', '5']), "{status}");
            let codes = content["schema"]["allOf"][1]["properties"]["code"]["enum"].as_array();
            answered.extend(codes.unwrap().iter().filter_map(Value::as_str));
        }
    }
    let schema = &DOCUMENT["components"]["schemas"]["ProblemCode"];
    let all: BTreeSet<_> =
        schema["enum"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(answered, all);
    for code in all {
        assert!(schema["description"].as_str().unwrap().contains(&format!("`{code}`")), "{code}");
    }
}

#[test]
fn what_a_call_takes_is_closed_and_every_reference_leads_somewhere() {
    let mut bodies = 0;
    for (path, method, operation) in operations() {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(parameter["description"].is_string(), "{method} {path}: {parameter}");
        }
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        if schema["$ref"].is_string() {
            bodies += 1;
            assert_eq!(resolve(schema)["additionalProperties"], false, "{method} {path}");
        }
    }
    assert!(bodies >= 8, "{bodies}");
    follow_references(&DOCUMENT);
}

fn follow_references(value: &Value) {
    resolve(value);
    match value {
        Value::Array(items) => items.iter().for_each(follow_references),
        Value::Object(members) => members.values().for_each(follow_references),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_and_its_page_need_no_key_and_nothing_from_elsewhere() {
    let api = Api::start().await;
    let answer = api.get("/openapi.json").without("Authorization").send().await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json(), *DOCUMENT);

    let page = api.get("/docs").without("Authorization").send().await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'self'"), "{policy}");
    let html = String::from_utf8(page.body).unwrap();
    assert!(!html.contains("//"), "the page names another address: {html}");
    let mut loaded = 0;
    for name in html.split('"').filter(|text| text.starts_with("docs/")) {
        let file = api.get(&format!("/{name}")).without("Authorization").send().await;
        assert_eq!(file.status, 200, "{name}");
        assert!(!file.body.is_empty(), "{name}");
        loaded += 1;
    }
    assert_eq!(loaded, 5);
    let start = api.get("/docs/swagger-initializer.js").send().await;
    let start = String::from_utf8(start.body).unwrap();
    assert!(start.contains("\"openapi.json\"") && start.contains("none"), "{start}");
    for name in ["nothing.js", "index.html", "swagger-ui.css.map", "..%2Fopenapi.json"] {
        let answer = api.get(&format!("/docs/{name}")).send().await;
        assert_eq!(answer.problem(), problem(404, "not_found"), "{name}");
    }
}
