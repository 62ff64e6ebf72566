//! A file has one concept, a name that says it, and a length that can be read.

use super::finding::{Finding, assert_none};
use super::repository;
use super::source::Source;

const LINES_MAX: usize = 400;

/// Names that say where things were put, not what they are.
const EMPTY_NAMES: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "misc", "types", "models"];

/// Files below `crates/*/src` that are longer than a person reads in one go, their trailing tests
/// left out.
fn long_files(sources: &[Source]) -> Vec<Finding> {
    let product = sources.iter().filter(|source| {
        let names: Vec<&str> = source.path.split('/').collect();
        names.first() == Some(&"crates")
            && names.get(2) == Some(&"src")
            && names.last() != Some(&"tests.rs")
    });
    let with_lines = product.map(|source| (source, lines_without_tests(&source.code)));
    with_lines
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(source, lines)| {
            let what = format!("{lines} lines without tests, the limit is {LINES_MAX}");
            Finding::new(&source.path, LINES_MAX + 1, what)
        })
        .collect()
}

/// The lines before the `#[cfg(test)] mod tests` that ends the file; all of them where code follows
/// the tests.
fn lines_without_tests(code: &str) -> usize {
    let lines: Vec<&str> = code.lines().map(str::trim_end).collect();
    let start = lines.iter().rposition(|line| *line == "#[cfg(test)]");
    let Some((product, tests)) = start.and_then(|start| lines.split_at_checked(start)) else {
        return lines.len();
    };
    let is_the_module = |line: &&str| matches!(*line, "mod tests {" | "mod tests;");
    let attributes = tests.iter().take_while(|line| line.starts_with("#[")).count();
    let mut tests = tests.iter().skip(attributes);
    if !tests.next().is_some_and(is_the_module) {
        return lines.len();
    }
    // rustfmt indents all that is inside: the first line that closes at the margin closes the
    // module.
    let mut after = tests.skip_while(|line| line.is_empty() || line.starts_with(' ')).skip(1);
    if after.any(|line| !line.is_empty()) { lines.len() } else { product.len() }
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
fn a_long_file_is_found_and_its_trailing_tests_are_not_counted() {
    let tests = "\n#[cfg(test)]\nmod tests {\n    fn a() {}\n\n    fn b() {}\n}\n";
    let source = |path: &str, lines: usize, end: &str| {
        Source::new(path, &("fn a() {}\n".repeat(lines) + end))
    };
    let sources = [
        source("crates/a/src/short.rs", 399, tests),
        source("crates/a/src/long.rs", 401, tests),
        source("crates/a/src/code_after_tests.rs", 395, &format!("{tests}fn c() {{}}\n")),
        source("crates/a/src/b/tests.rs", 500, ""),
        source("integration-tests/tests/a.rs", 500, ""),
    ];
    let findings = long_files(&sources);
    let paths: Vec<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
    assert_eq!(paths, ["crates/a/src/long.rs", "crates/a/src/code_after_tests.rs"]);
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
