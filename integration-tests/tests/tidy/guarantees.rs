//! The table of guarantees names tests that exist.

use std::collections::BTreeSet;

use super::finding::{Finding, assert_none, told};
use super::markdown::Document;
use super::repository;
use super::source::Source;

/// A word with so many underscores is a sentence, and sentences are the names of tests.
const UNDERSCORES_OF_A_SENTENCE: usize = 3;

/// What else has such a name: constraints in migrations, and strings in the product's code.
struct Named<'a> {
    sources: &'a [Source],
    others: BTreeSet<&'a str>,
}

impl<'a> Named<'a> {
    fn new(sources: &'a [Source], migrations: &'a [String]) -> Self {
        let words = migrations.iter().flat_map(|text| text.split(|c| !is_name(c)));
        let product = sources.iter().filter(|source| source.path.starts_with("crates/"));
        let strings =
            product.flat_map(|source| &source.literals).map(|literal| literal.text.as_str());
        Self { sources, others: words.chain(strings).collect() }
    }

    fn is_function(&self, name: &str, file: Option<&str>) -> bool {
        let in_file =
            |source: &&Source| file.is_none_or(|file| repository::is_end_of(file, &source.path));
        self.sources.iter().filter(in_file).any(|source| source.functions().any(|it| it == name))
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
}

fn names_of_nothing(document: &Document, named: &Named<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, span) in &document.spans {
        let (before, name) = span.rsplit_once("::").unwrap_or(("", span));
        let file = repository::has_extension(before, "rs").then_some(before);
        let is_sentence = name.matches('_').count() >= UNDERSCORES_OF_A_SENTENCE;
        if name.is_empty() || !name.chars().all(is_name) || !(is_sentence || file.is_some()) {
            continue;
        }
        let is_other = file.is_none() && named.others.contains(name);
        if !is_other && !named.is_function(name, file) {
            findings.push(Finding::new(&document.path, *line, format!("`{span}` does not exist")));
        }
    }
    findings
}

#[test]
fn every_test_that_the_guarantees_name_exists() -> anyhow::Result<()> {
    let path = "docs/GUARANTEES.md";
    // That the document exists is a rule of its own.
    let text = repository::text(path)?.unwrap_or_default();
    let mut migrations = Vec::new();
    for path in repository::files("migrations")? {
        migrations.extend(repository::text(&path)?);
    }
    let sources = repository::rust_sources()?;
    let named = Named::new(&sources, &migrations);
    let findings = names_of_nothing(&Document::new(path, &text), &named);
    assert_none(&findings, "a guarantee is worth as much as the test that shows a loser");
    Ok(())
}

#[test]
fn a_test_that_nobody_wrote_is_found_on_its_line() {
    let sources = [
        Source::new("integration-tests/tests/claim.rs", "async fn two_workers_never_share() {}"),
        Source::new(
            "crates/api/src/code.rs",
            "const CODE: &str = \"idempotency_key_in_progress\";",
        ),
    ];
    let migrations = ["constraint claim_held_iff_processing check (true)".to_owned()];
    let named = Named::new(&sources, &migrations);
    let text = "`two_workers_never_share` `tests/claim.rs::two_workers_never_share` `claim_token`\n\
                `claim_held_iff_processing` `idempotency_key_in_progress` `store::claim_due`\n\
                `two_workers_always_share` `tests/gone.rs::two_workers_never_share`\n\
                `claim.rs::gone`\n";
    let found = told(&names_of_nothing(&Document::new("docs/GUARANTEES.md", text), &named));
    assert_eq!(
        found,
        [
            "docs/GUARANTEES.md:3: `two_workers_always_share` does not exist",
            "docs/GUARANTEES.md:3: `tests/gone.rs::two_workers_never_share` does not exist",
            "docs/GUARANTEES.md:4: `claim.rs::gone` does not exist",
        ]
    );
}
