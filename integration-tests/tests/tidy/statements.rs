//! SQL stands in the store.

use super::finding::{Finding, assert_none, told};
use super::repository;
use super::source::Source;

/// Where SQL may stand: the store, what measures and checks it, and programs that embed it.
const SQL_MAY_STAND_IN: &[&str] =
    &["crates/store/", "crates/proof/", "integration-tests/", "examples/"];

/// Between `update` and `set` stand a table with its schema and an alias: at most four words.
const WORDS_OF_A_TABLE: usize = 4;

fn sql_outside_the_store(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        if SQL_MAY_STAND_IN.iter().any(|folder| source.path.starts_with(folder)) {
            continue;
        }
        let sql = source.literals.iter().filter(|literal| is_sql(&literal.text));
        findings.extend(sql.map(|literal| {
            Finding::new(&source.path, literal.line, "a SQL statement outside of crates/store")
        }));
    }
    findings
}

fn is_sql(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let words: Vec<&str> = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    words.iter().enumerate().any(|(at, word)| {
        let mut after = words.iter().skip(at + 1);
        match *word {
            "insert" => after.next() == Some(&"into"),
            "delete" => after.next() == Some(&"from"),
            "select" => after.any(|word| *word == "from"),
            "update" => after.skip(1).take(WORDS_OF_A_TABLE).any(|word| *word == "set"),
            _ => false,
        }
    })
}

#[test]
fn sql_stands_in_the_store_and_nowhere_else() -> anyhow::Result<()> {
    let findings = sql_outside_the_store(&repository::rust_sources()?);
    assert_none(&findings, "every race is settled by a statement that can be read in one place");
    Ok(())
}

#[test]
fn a_statement_in_a_handler_is_found_on_its_line() {
    let text = "/// SELECT 1 FROM a comment\nfn f() {\n\
                run(\"select id\nfrom fencepost.endpoints\");\n}\n";
    let source = |path| Source::new(path, text);
    let findings =
        sql_outside_the_store(&[source("crates/api/src/a.rs"), source("crates/store/src/a.rs")]);
    assert_eq!(told(&findings), ["crates/api/src/a.rs:3: a SQL statement outside of crates/store"]);
}

#[test]
fn statements_are_told_from_sentences() {
    for sql in [
        "SELECT 1 FROM t",
        "with a as (select x from t) table a",
        "Insert Into t values (1)",
        "update fencepost.deliveries as d set state = 1",
        "DELETE FROM t",
    ] {
        assert!(is_sql(sql), "{sql}");
    }
    for sentence in
        ["update the endpoint", "the set was updated", "deleted from the list", "selected"]
    {
        assert!(!is_sql(sentence), "{sentence}");
    }
}
