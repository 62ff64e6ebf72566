//! Two implementations of one trait, file for file.

use std::collections::BTreeSet;

use super::finding::{Finding, assert_none, told};
use super::repository;

const POSTGRES: &str = "crates/store/src/postgres/";
const SQLITE: &str = "crates/store/src/sqlite/";

/// Files that only one implementation has, each with its reason.
const ALONE: &[(&str, &str)] = &[
    (
        "crates/store/src/postgres/delivery/record_attempts/columns.rs",
        "reports as arrays: on SQLite a report is bound by itself",
    ),
    (
        "crates/store/src/postgres/doctor/dead_rows.rs",
        "SQLite keeps no dead rows: a page that is free is used again",
    ),
    (
        "crates/store/src/postgres/doctor/invalid_indexes.rs",
        "SQLite makes an index in a transaction",
    ),
    ("crates/store/src/postgres/doctor/partitions.rs", "SQLite has no partitions"),
    (
        "crates/store/src/postgres/doctor/snapshots.rs",
        "SQLite has no vacuum that they could hold up",
    ),
    (
        "crates/store/src/postgres/pool/bounded.rs",
        "SQLite is a file of this machine: no statement waits for a network",
    ),
    ("crates/store/src/postgres/pool/kept.rs", "SQLite is not pinged between two statements"),
    ("crates/store/src/postgres/retry.rs", "SQLite has one writer: no deadlock, nothing to repeat"),
    ("crates/store/src/postgres/schema/grants.rs", "SQLite has no roles"),
    ("crates/store/src/postgres/schema/partitions.rs", "SQLite has no partitions"),
    ("crates/store/src/postgres/schema/partitions/drop_day.rs", "SQLite has no partitions"),
    ("crates/store/src/postgres/schema/partitions/make.rs", "SQLite has no partitions"),
    (
        "crates/store/src/postgres/undropped.rs",
        "every transaction on SQLite runs on a task of its own already",
    ),
    ("crates/store/src/sqlite/server_lock.rs", "PostgreSQL serves any number of processes"),
    ("crates/store/src/sqlite/writer.rs", "PostgreSQL has any number of writers"),
];

fn without_a_twin(files: &BTreeSet<String>, alone: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (here, there) in [(POSTGRES, SQLITE), (SQLITE, POSTGRES)] {
        for path in files {
            let Some(name) = path.strip_prefix(here) else {
                continue;
            };
            let twin = format!("{there}{name}");
            let excepted = alone.iter().any(|(alone, _)| alone == path);
            match (files.contains(&twin), excepted) {
                (false, false) => {
                    findings.push(Finding::new(path, 1, format!("{twin} is missing")));
                }
                (true, true) => {
                    findings.push(Finding::new(path, 1, "has a twin: take it off the list"));
                }
                _ => {}
            }
        }
    }
    let gone = alone.iter().filter(|(path, _)| !files.contains(*path));
    findings.extend(gone.map(|(path, _)| Finding::new(path, 1, "is gone: take it off the list")));
    findings
}

#[test]
fn the_two_stores_are_the_same_file_for_file() -> anyhow::Result<()> {
    let files = repository::files("crates/store/src")?;
    for folder in [POSTGRES, SQLITE] {
        let there = files.iter().any(|path| path.starts_with(folder));
        assert!(there, "{folder} has no file: the rule would hold vacuously");
    }
    let why =
        "who has read a statement in one store finds its twin under the same name in the other";
    assert_none(&without_a_twin(&files, ALONE), why);
    Ok(())
}

#[test]
fn a_file_without_a_twin_and_an_outlived_exception_are_found() {
    let files: BTreeSet<String> =
        ["postgres/a.rs", "sqlite/a.rs", "postgres/b/c.rs", "postgres/d.rs"]
            .map(|name| format!("crates/store/src/{name}"))
            .into();
    let alone = [
        ("crates/store/src/postgres/a.rs", "outlived"),
        ("crates/store/src/postgres/d.rs", "reasoned"),
        ("crates/store/src/sqlite/e.rs", "gone"),
    ];
    let findings = without_a_twin(&files, &alone);
    let found = told(&findings);
    assert_eq!(
        found,
        [
            "crates/store/src/postgres/a.rs:1: has a twin: take it off the list",
            "crates/store/src/postgres/b/c.rs:1: crates/store/src/sqlite/b/c.rs is missing",
            "crates/store/src/sqlite/e.rs:1: is gone: take it off the list",
        ]
    );
}
