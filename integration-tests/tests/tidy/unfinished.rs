//! Nothing is left for later, and no test waits for time to pass.

use super::finding::{Finding, assert_none, told};
use super::repository;
use super::source::Source;

/// What stands for work that was not done.
const UNFINISHED: &[(&str, &str)] = &[
    ("#[ignore", "a test that is not run holds nothing"),
    ("todo!", "finish it or leave it out"),
    ("unimplemented!", "finish it or leave it out"),
];

const SLEEPS: &[&str] = &["sleep(", "sleep_until(", "sleep_ms("];

/// Test files that may sleep, each with its reason.
const MAY_SLEEP: &[(&str, &str)] = &[];

fn unfinished(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        for (word, why) in UNFINISHED {
            let what = format!("`{word}`: {why}");
            let lines = source.lines_with(word);
            findings.extend(lines.map(|line| Finding::new(&source.path, line, what.clone())));
        }
    }
    findings
}

fn sleeping_tests(sources: &[Source], may_sleep: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        let is_test = source.path.split('/').any(|name| name == "tests");
        if !is_test || may_sleep.iter().any(|(path, _)| *path == source.path) {
            continue;
        }
        for word in SLEEPS {
            let lines = source.lines_with(word);
            let what = "age the row, or wait for a signal or a barrier";
            findings.extend(lines.map(|line| Finding::new(&source.path, line, what)));
        }
    }
    findings
}

#[test]
fn nothing_is_ignored_or_left_to_be_written() -> anyhow::Result<()> {
    let findings = unfinished(&repository::rust_sources()?);
    assert_none(&findings, "what is on the main branch is done");
    Ok(())
}

#[test]
fn no_test_waits_for_time_to_pass() -> anyhow::Result<()> {
    let findings = sleeping_tests(&repository::rust_sources()?, MAY_SLEEP);
    assert_none(&findings, "a test that sleeps is slow on a fast machine and wrong on a slow one");
    Ok(())
}

#[test]
fn unfinished_work_is_found_on_its_line() {
    let text = "// todo!()\n#[test]\n#[ignore = \"slow\"]\nfn a() {\n    todo!()\n}\n";
    let source = Source::new("crates/a/src/a.rs", text);
    let lines: Vec<usize> = unfinished(&[source]).iter().map(|finding| finding.line).collect();
    assert_eq!(lines, [3, 5]);
}

#[test]
fn a_sleep_in_a_test_is_found_and_one_in_the_product_is_not() {
    let text = "fn nothing_sleeps() {\n    tokio::time::sleep(a);\n}\n";
    let sources =
        ["a/tests/a.rs", "a/tests/b.rs", "a/src/a.rs"].map(|path| Source::new(path, text));
    let findings = sleeping_tests(&sources, &[("a/tests/b.rs", "a reason")]);
    let found = told(&findings);
    assert_eq!(found, ["a/tests/a.rs:2: age the row, or wait for a signal or a barrier"]);
}
