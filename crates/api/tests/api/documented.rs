//! Holds every answer of these tests to the OpenAPI document.
//!
//! The document cannot know which problems a handler answers, so it is told them beside it. An answer
//! with a status, a code or a member that is not told fails the test that met it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;

use crate::harness::Answer;

pub(crate) static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_slice(&api::document().unwrap()).unwrap());

/// The request line is `METHOD PATH HTTP/1.1`.
pub(crate) fn assert_documented(line: &str, answer: &Answer) {
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let path = path.split('?').next().unwrap();
    // What is not there answers `not_found`, which the tests of paths look at.
    let Some(item) = item_of(path) else { return };
    let method = if method == "HEAD" { "GET" } else { method }.to_ascii_lowercase();
    let Some(operation) = item.get(&method) else {
        assert_eq!(answer.status, 405, "{line}: {answer:?}");
        return;
    };
    let response = &operation["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{line}: the status is not documented: {answer:?}");
    let declared = answer.header("content-type").unwrap_or_default();
    if declared == "application/problem+json" {
        let code = answer.problem().1;
        let named = &response["content"][declared]["schema"]["allOf"][1]["properties"]["code"];
        let named = named["enum"].as_array().unwrap();
        assert!(named.contains(&code.as_str().into()), "{line}: {code} is not documented");
    } else if let Some(schema) = response["content"]["application/json"].get("schema")
        && path != "/openapi.json"
    {
        assert_members(line, schema, &answer.json());
    }
}

/// Every member of an object is documented, and every one that is always there is there.
fn assert_members(line: &str, schema: &Value, value: &Value) {
    let (mut known, mut required) = (BTreeSet::new(), BTreeSet::new());
    collect(schema, &mut known, &mut required);
    let given: BTreeSet<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert!(given.is_subset(&known), "{line}: {value} has members that are not documented");
    assert!(required.is_subset(&given), "{line}: {value} lacks members that are documented");
    if let Some(rows) = value["data"].as_array() {
        let rows_of = &resolve(schema)["properties"]["data"]["items"];
        for row in rows {
            assert_members(line, rows_of, row);
        }
    }
}

fn collect<'a>(schema: &'a Value, known: &mut BTreeSet<&'a str>, required: &mut BTreeSet<&'a str>) {
    let schema = resolve(schema);
    for part in schema["allOf"].as_array().into_iter().flatten() {
        collect(part, known, required);
    }
    known.extend(schema["properties"].as_object().into_iter().flatten().map(|(name, _)| &**name));
    required.extend(schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str));
}

/// The schema itself, where it is named.
pub(crate) fn resolve(schema: &Value) -> &Value {
    match schema["$ref"].as_str() {
        Some(name) => DOCUMENT.pointer(name.strip_prefix('#').unwrap()).expect("a schema"),
        None => schema,
    }
}

fn item_of(path: &str) -> Option<&'static Value> {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    paths.get(path).or_else(|| {
        let fits = |template: &str| {
            let (given, template): (Vec<_>, Vec<_>) =
                (path.split('/').collect(), template.split('/').collect());
            given.len() == template.len()
                && given
                    .iter()
                    .zip(template)
                    .all(|(g, t)| t == *g || (t.starts_with('{') && !g.is_empty()))
        };
        paths.iter().find(|(template, _)| fits(template)).map(|(_, item)| item)
    })
}
