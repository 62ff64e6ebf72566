//! Migrations are named so that they sort, are the same bytes on every machine, and leave the previous
//! release at work.

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

/// The first migration that has to leave the previous release at work.
const EXPANDING_FROM: &str = "0012";
/// What a statement of the previous release may stumble over.
const CONTRACTING: &[&str] = &[
    "DROP TABLE",
    "DROP COLUMN",
    "DROP FUNCTION",
    "RENAME ",
    "ALTER COLUMN",
    "CREATE UNIQUE INDEX",
    NARROWING,
];
/// It does not if it is about a column that this very migration adds.
const NARROWING: &str = "ADD CONSTRAINT";
/// Says why the previous release does not.
const REASON: &str = "-- Expands:";
/// Says from which release on a binary can work.
const DECLARED: &str = "compatible_from =";

/// Lines that may stop a process of the previous release, with neither a reason nor a declaration.
fn contracting(path: &str, text: &str) -> Vec<Finding> {
    let code = |line: &str| line.split("--").next().unwrap_or_default().to_ascii_uppercase();
    if text.lines().any(|line| !line.trim_start().starts_with("--") && line.contains(DECLARED)) {
        return Vec::new();
    }
    let upper = text.to_ascii_uppercase();
    let columns = upper.split("ADD COLUMN ").skip(1);
    let added: Vec<&str> = columns.filter_map(|rest| rest.split_whitespace().next()).collect();
    let (mut findings, mut before, mut place) = (Vec::new(), "", 0);
    for (number, line) in (1..).zip(text.lines()) {
        let code = code(line);
        let statement = upper.get(place..).and_then(|rest| rest.split(';').next());
        let of_new = statement.is_some_and(|it| added.iter().any(|column| it.contains(column)));
        place += line.len() + 1;
        let required =
            code.contains("ADD COLUMN") && code.contains("NOT NULL") && !code.contains("DEFAULT");
        let named = CONTRACTING.iter().find(|word| code.contains(**word)).copied();
        let named = named.filter(|word| *word != NARROWING || !of_new);
        if let Some(word) = named.or(required.then_some("ADD COLUMN … NOT NULL"))
            && !before.trim_start().starts_with(REASON)
        {
            let what = format!("{word} can stop the previous release: see docs/OPERATIONS.md");
            findings.push(Finding::new(path, number, what));
        }
        before = line;
    }
    findings
}

#[test]
fn a_migration_expands_or_says_from_which_release_on_it_works() -> anyhow::Result<()> {
    let mut findings = Vec::new();
    let mut looked_at = 0;
    for path in repository::files("migrations")? {
        let name = path.rsplit('/').next().and_then(number_of);
        if name.is_some_and(|number| number >= EXPANDING_FROM) {
            looked_at += 1;
            findings.extend(contracting(&path, &repository::text(&path)?.unwrap_or_default()));
        }
    }
    assert!(looked_at > 0, "no migration is looked at: the rule would hold vacuously");
    assert_none(&findings, "an upgrade is taken while processes of the previous release run");
    Ok(())
}

#[test]
fn a_contracting_line_is_found_unless_it_gives_its_reason_or_is_declared() {
    let bad = "ALTER TABLE a ADD COLUMN b int NOT NULL DEFAULT 1;\n\
               alter table a add column c int not null;\n\
               -- DROP TABLE in a comment\n\
               ALTER TABLE a DROP COLUMN d;\n";
    let found = told(&contracting("m.sql", bad));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("m.sql:2: ADD COLUMN … NOT NULL"), "{found:?}");
    assert!(found[1].starts_with("m.sql:4: DROP COLUMN"), "{found:?}");
    let declared = format!("{bad}UPDATE schema_version SET version = 13, compatible_from = 13;\n");
    assert_eq!(contracting("m.sql", &declared), []);
    let narrowing = "ALTER TABLE a ADD CONSTRAINT one\n    CHECK (old > 0);\n";
    assert_eq!(contracting("m.sql", narrowing).len(), 1);
    let own = format!("ALTER TABLE a ADD COLUMN new int;\n{}", narrowing.replace("old", "new"));
    assert_eq!(contracting("m.sql", &own), []);
    let reasoned =
        "-- Expands: the check allows one value more.\nALTER TABLE a ADD CONSTRAINT b;\n";
    assert_eq!(contracting("m.sql", reasoned), []);
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
