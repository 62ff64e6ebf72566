//! Migrations are named so that they sort, and are the same bytes on every machine.

use std::collections::BTreeMap;

use super::finding::{Finding, assert_none, told};
use super::repository;

/// The rules for whoever adds a migration may stand beside them.
const NOT_A_MIGRATION: &str = "README.md";

/// `NNNN_sentence.sql`
fn number_of(name: &str) -> Option<&str> {
    let (number, sentence) = name.strip_suffix(".sql")?.split_once('_')?;
    let is_sentence = !sentence.is_empty()
        && sentence.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    (number.len() == 4 && number.chars().all(|c| c.is_ascii_digit()) && is_sentence)
        .then_some(number)
}

fn misnamed(paths: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut taken: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for path in paths {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name == NOT_A_MIGRATION {
            continue;
        }
        let Some(number) = number_of(name) else {
            findings.push(Finding::new(path, 1, "is not named NNNN_sentence.sql"));
            continue;
        };
        if let Some(first) = taken.insert((folder, number), name) {
            findings.push(Finding::new(path, 1, format!("{number} is the number of {first}")));
        }
    }
    findings
}

fn carriage_returns(path: &str, bytes: &[u8]) -> Vec<Finding> {
    let lines = bytes.split(|byte| *byte == b'\n').zip(1..);
    let with_return = lines.filter(|(line, _)| line.contains(&b'\r'));
    with_return.map(|(_, number)| Finding::new(path, number, "has a carriage return")).collect()
}

#[test]
fn migrations_are_numbered_and_named_as_sentences() -> anyhow::Result<()> {
    let paths = repository::files("migrations")?;
    assert!(!paths.is_empty(), "migrations/ has no file: the rule would hold vacuously");
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    assert_none(&misnamed(&paths), "the list of migrations is the history of the schema");
    Ok(())
}

#[test]
fn migrations_end_their_lines_with_a_line_feed_alone() -> anyhow::Result<()> {
    let mut findings = Vec::new();
    for path in repository::files("migrations")? {
        findings.extend(carriage_returns(&path, &std::fs::read(repository::root().join(&path))?));
    }
    let why = "sqlx hashes the bytes: with other line ends a database refuses its own migrations";
    assert_none(&findings, why);
    Ok(())
}

#[test]
fn a_bad_name_and_a_number_taken_twice_are_found() {
    let paths = [
        "migrations/README.md",
        "migrations/postgres/0001_endpoints.sql",
        "migrations/postgres/0001_keys.sql",
        "migrations/sqlite/0001_endpoints.sql",
        "migrations/sqlite/2_keys.sql",
        "migrations/sqlite/0003-Keys.sql",
    ];
    let findings = misnamed(&paths);
    let found = told(&findings);
    assert_eq!(
        found,
        [
            "migrations/postgres/0001_keys.sql:1: 0001 is the number of 0001_endpoints.sql",
            "migrations/sqlite/2_keys.sql:1: is not named NNNN_sentence.sql",
            "migrations/sqlite/0003-Keys.sql:1: is not named NNNN_sentence.sql",
        ]
    );
}

#[test]
fn a_carriage_return_is_found_on_its_line() {
    let findings = carriage_returns("a.sql", b"create\ntable\r\na");
    assert_eq!(findings, [Finding::new("a.sql", 2, "has a carriage return")]);
}
