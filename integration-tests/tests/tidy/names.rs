//! A file has one concept, a name that says it, and a length that can be read.

use super::finding::{Finding, assert_none};
use super::repository;
use super::source::Source;

const LINES_MAX: usize = 400;

/// Names that say where things were put, not what they are.
const EMPTY_NAMES: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "misc", "types", "models"];

/// Files that are longer than a person reads in one go, tests as well.
fn long_files(sources: &[Source]) -> Vec<Finding> {
    let with_lines = sources.iter().map(|source| (source, source.code.lines().count()));
    with_lines
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(source, lines)| {
            let what = format!("{lines} lines, the limit is {LINES_MAX}");
            Finding::new(&source.path, LINES_MAX + 1, what)
        })
        .collect()
}

fn empty_names(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        let path = &source.path;
        if path.split('/').next_back() == Some("mod.rs") {
            findings.push(Finding::new(path, 1, "write foo.rs beside foo/, not foo/mod.rs"));
        }
        let names = path.split('/').map(|name| name.strip_suffix(".rs").unwrap_or(name));
        for name in names.filter(|name| EMPTY_NAMES.contains(name)) {
            findings.push(Finding::new(path, 1, format!("`{name}` names no concept")));
        }
    }
    findings
}

#[test]
fn no_file_is_longer_than_a_person_reads_in_one_go() -> anyhow::Result<()> {
    let findings = long_files(&repository::rust_sources()?);
    assert_none(&findings, "a long file holds more than one concept: split it by concept");
    Ok(())
}

#[test]
fn every_file_is_named_after_its_concept() -> anyhow::Result<()> {
    let findings = empty_names(&repository::rust_sources()?);
    assert_none(&findings, "a listing of the folder reads as the table of contents");
    Ok(())
}

#[test]
fn a_long_file_is_found_whether_it_is_of_the_product_or_of_its_tests() {
    let tests = "\n#[cfg(test)]\nmod tests {\n    fn a() {}\n}\n";
    let source = |path: &str, lines: usize, end: &str| {
        Source::new(path, &("fn a() {}\n".repeat(lines) + end))
    };
    let sources = [
        source("crates/a/src/short.rs", 400, ""),
        source("crates/a/src/long.rs", 401, ""),
        source("crates/a/src/long_with_its_tests.rs", 396, tests),
        source("crates/a/src/b/tests.rs", 401, ""),
        source("integration-tests/tests/a.rs", 401, ""),
    ];
    let findings = long_files(&sources);
    let paths: Vec<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
    let long = sources.iter().skip(1).map(|source| source.path.as_str());
    assert_eq!(paths, long.collect::<Vec<_>>());
}

#[test]
fn names_without_a_concept_are_found() {
    let bad = ["crates/a/src/b/mod.rs", "crates/a/src/util.rs", "crates/a/tests/common/b.rs"];
    let found = |paths: &[&str]| {
        let sources: Vec<Source> = paths.iter().map(|path| Source::new(path, "")).collect();
        empty_names(&sources).len()
    };
    assert_eq!(found(&bad), 3);
    assert_eq!(found(&["crates/a/src/delivery/claim.rs", "crates/a/src/utility_company.rs"]), 0);
}
