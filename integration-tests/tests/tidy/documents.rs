//! Documents name only what is there.

use std::collections::BTreeSet;

use super::finding::{Finding, assert_none, told};
use super::markdown::Document;
use super::repository;

/// Documents that readers are sent to.
const REQUIRED: &[&str] = &["README.md", "docs/ARCHITECTURE.md", "docs/GUARANTEES.md"];

/// What starts a path from the root.
const ROOTS: &[&str] =
    &["crates/", "migrations/", "docs/", "integration-tests/", "examples/", ".ci/", ".github/"];

/// Files of the root that documents name.
const ROOT_FILES: &[&str] = &[
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "clippy.toml",
    "deny.toml",
    "justfile",
    "rust-toolchain.toml",
];

fn missing_documents(files: &BTreeSet<String>) -> Vec<Finding> {
    let missing = REQUIRED.iter().filter(|path| !files.contains(**path));
    missing.map(|path| Finding::new(path, 1, "has not been written")).collect()
}

fn missing_paths(document: &Document, files: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, span) in &document.spans {
        let Some((path, start)) = path_in(span) else {
            continue;
        };
        let there = match start {
            Start::Root => is_there(path, files),
            Start::Anywhere => files.iter().any(|file| repository::is_end_of(path, file)),
        };
        if !there {
            findings.push(Finding::new(&document.path, *line, format!("`{path}` does not exist")));
        }
    }
    findings
}

/// Where a path in a document starts.
enum Start {
    Root,
    Anywhere,
}

/// The path that a code span starts with, without the function, line or arguments behind it.
fn path_in(span: &str) -> Option<(&str, Start)> {
    let word = span.split_whitespace().next()?;
    let path = word.split(':').next()?.trim_end_matches('/');
    if word.contains(['<', '…']) {
        return None;
    }
    if ROOTS.iter().any(|root| word.starts_with(root)) || ROOT_FILES.contains(&path) {
        return Some((path, Start::Root));
    }
    let mut ends = ["rs", "sql"].iter();
    let is_source = ends.any(|end| repository::has_extension(path, end));
    is_source.then_some((path, Start::Anywhere))
}

/// Whether `pattern` names a file, or a folder with a file in it.
fn is_there(pattern: &str, files: &BTreeSet<String>) -> bool {
    if let Some((before, rest)) = pattern.split_once('{')
        && let Some((choices, after)) = rest.split_once('}')
    {
        return choices
            .split(',')
            .all(|choice| is_there(&format!("{before}{choice}{after}"), files));
    }
    files.iter().any(|file| {
        let mut names = file.split('/');
        pattern.split('/').all(|pattern| names.next().is_some_and(|name| is_name(pattern, name)))
    })
}

fn is_name(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => name
            .strip_prefix(start)
            .is_some_and(|rest| rest.len() >= end.len() && rest.ends_with(end)),
        None => pattern == name,
    }
}

fn dead_links(document: &Document, files: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, link) in &document.links {
        let target = link.split('#').next().unwrap_or_default();
        if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let there =
            from_document(&document.path, target).is_some_and(|path| is_there(&path, files));
        if !there {
            findings.push(Finding::new(
                &document.path,
                *line,
                format!("the link to {target} is dead"),
            ));
        }
    }
    findings
}

/// A link's target as a path from the root; `None` where it leaves the repository.
fn from_document(document: &str, target: &str) -> Option<String> {
    let mut names: Vec<&str> = document.split('/').collect();
    names.pop();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

/// Every Markdown file that `is_meant` picks.
fn documents(
    files: &BTreeSet<String>,
    is_meant: fn(&str) -> bool,
) -> anyhow::Result<Vec<Document>> {
    let markdown = files.iter().filter(|path| repository::has_extension(path, "md"));
    let mut documents = Vec::new();
    for path in markdown.filter(|path| is_meant(path)) {
        let text = repository::text(path)?.unwrap_or_default();
        documents.push(Document::new(path, &text));
    }
    Ok(documents)
}

/// Decision records are left out: they tell of the day they were written.
fn describes_today(path: &str) -> bool {
    path == "README.md" || path.strip_prefix("docs/").is_some_and(|name| !name.contains('/'))
}

#[test]
fn the_documents_that_readers_are_sent_to_exist() -> anyhow::Result<()> {
    let findings = missing_documents(&repository::files("")?);
    assert_none(&findings, "a reader starts at the README, the architecture or the guarantees");
    Ok(())
}

#[test]
fn every_path_in_a_document_exists() -> anyhow::Result<()> {
    let files = repository::files("")?;
    let documents = documents(&files, describes_today)?;
    let findings: Vec<Finding> =
        documents.iter().flat_map(|document| missing_paths(document, &files)).collect();
    assert_none(&findings, "a document that names what is gone sends its reader astray");
    Ok(())
}

#[test]
fn every_relative_link_leads_somewhere() -> anyhow::Result<()> {
    let files = repository::files("")?;
    let documents = documents(&files, |_| true)?;
    let findings: Vec<Finding> =
        documents.iter().flat_map(|document| dead_links(document, &files)).collect();
    assert_none(&findings, "a dead link sends its reader astray");
    Ok(())
}

mod bad_examples {
    use super::*;

    fn files() -> BTreeSet<String> {
        [
            "README.md",
            "crates/store/src/postgres/claim.rs",
            "crates/api/src/lib.rs",
            ".ci/run",
            "docs/GUARANTEES.md",
        ]
        .map(str::to_owned)
        .into()
    }

    #[test]
    fn a_required_document_that_is_missing_is_found() {
        let found = missing_documents(&files());
        assert_eq!(found, [Finding::new("docs/ARCHITECTURE.md", 1, "has not been written")]);
    }

    #[test]
    fn a_path_that_is_gone_is_found_on_its_line() {
        let text = "`crates/store/src` `.ci/run --fast` `postgres/claim.rs:12` `README.md`\n\
                    `crates/*/src/lib.rs` `crates/{api,store}/src` `crates/<name>` `docs/`\n\
                    `cargo test` `a/b`\n\
                    `crates/gone` `crates/{api,gone}` `migrations/*`\n\
                    `gone.rs::f` `aim.rs` `deny.toml`\n";
        let found = told(&missing_paths(&Document::new("README.md", text), &files()));
        assert_eq!(
            found,
            [
                "README.md:4: `crates/gone` does not exist",
                "README.md:4: `crates/{api,gone}` does not exist",
                "README.md:4: `migrations/*` does not exist",
                "README.md:5: `gone.rs` does not exist",
                "README.md:5: `aim.rs` does not exist",
                "README.md:5: `deny.toml` does not exist",
            ]
        );
    }

    #[test]
    fn a_dead_link_is_found_on_its_line() {
        let text = "[a](GUARANTEES.md#g1) [b](../README.md) [c](https://example.com) [d](#e)\n\
                    [f](gone.md)\n[g](../../outside.md)\n";
        let found = told(&dead_links(&Document::new("docs/ARCHITECTURE.md", text), &files()));
        assert_eq!(
            found,
            [
                "docs/ARCHITECTURE.md:2: the link to gone.md is dead",
                "docs/ARCHITECTURE.md:3: the link to ../../outside.md is dead",
            ]
        );
    }
}
