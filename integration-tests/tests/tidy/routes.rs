//! Calls of the api are registered through its table, which says who may make them.

use super::finding::{Finding, assert_none, told};
use super::repository;
use super::source::Source;

/// The one file that speaks to the router.
const TABLE: &str = "crates/api/src/routes/table.rs";

/// Ways to serve something.
const REGISTRATIONS: &[&str] = &[
    "web::resource(",
    "web::scope(",
    ".service(",
    ".route(",
    "register(",
    "#[get(",
    "#[post(",
    "#[route(",
];

fn registered_beside_the_table(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        if !source.path.starts_with("crates/api/src/") || source.path == TABLE {
            continue;
        }
        for word in REGISTRATIONS {
            let lines = source.lines_with(word);
            let what = format!("`{word}`: write a line in the table of calls, see {TABLE}");
            findings.extend(lines.map(|line| Finding::new(&source.path, line, what.clone())));
        }
    }
    findings
}

#[test]
fn every_call_is_registered_through_the_table() -> anyhow::Result<()> {
    let sources = repository::rust_sources()?;
    assert!(sources.iter().any(|source| source.path == TABLE), "{TABLE} is not there");
    let findings = registered_beside_the_table(&sources);
    assert_none(&findings, "what is not in the table has no role that anybody checks");
    Ok(())
}

#[test]
fn a_call_beside_the_table_is_found_on_its_line() {
    let text = "fn f() {\n    config.service(x);\n}\n";
    let paths = ["crates/api/src/routes/a.rs", TABLE, "crates/worker/src/a.rs"];
    let findings = registered_beside_the_table(&paths.map(|path| Source::new(path, text)));
    let found = told(&findings);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("crates/api/src/routes/a.rs:2: `.service(`"), "{found:?}");
}
