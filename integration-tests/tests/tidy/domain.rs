//! The domain is a function of its arguments.

use super::finding::{Finding, assert_none};
use super::repository;
use super::source::Source;

/// What reaches outside, and where its value should come from. Clippy bans the same by path; this
/// holds for macros too, and where clippy is not run.
const OUTSIDE: &[(&str, &str)] = &[
    ("now_utc", "take the instant as an argument"),
    ("now_local", "take the instant as an argument"),
    ("SystemTime", "take the instant as an argument"),
    ("Instant::now", "take the instant as an argument"),
    ("now_v7", "take the id as an argument"),
    ("new_v4", "take the id as an argument"),
    ("rand::", "take the draw as an argument"),
    ("fastrand", "take the draw as an argument"),
    ("getrandom", "take the draw as an argument"),
    ("async fn", "the domain never waits"),
    (".await", "the domain never waits"),
    ("std::env", "take the setting as an argument"),
    ("TcpListener", "the domain opens no sockets"),
    ("TcpStream", "the domain opens no sockets"),
    ("UdpSocket", "the domain opens no sockets"),
];

fn reaches_outside(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with("crates/domain/src/")) {
        for (word, instead) in OUTSIDE {
            let what = format!("`{word}`: {instead}");
            let lines = source.lines_with(word);
            findings.extend(lines.map(|line| Finding::new(&source.path, line, what.clone())));
        }
    }
    findings
}

#[test]
fn the_domain_has_no_clock_no_randomness_and_no_io() -> anyhow::Result<()> {
    let sources = repository::rust_sources()?;
    let there = sources.iter().any(|source| source.path.starts_with("crates/domain/src/"));
    assert!(there, "crates/domain/src has no Rust file: the rule would hold vacuously");
    let why =
        "a decision that is a function of its arguments can be tested, replayed and model-checked";
    assert_none(&reaches_outside(&sources), why);
    Ok(())
}

#[test]
fn a_clock_in_the_domain_is_found_and_one_elsewhere_is_not() {
    let text = "// not OffsetDateTime::now_utc()\nfn f() {\n\
                OffsetDateTime::now_utc();\nfastrand::u8(..);\n}\n";
    let domain = Source::new("crates/domain/src/a.rs", text);
    let worker = Source::new("crates/worker/src/a.rs", text);
    let lines: Vec<usize> = reaches_outside(&[domain, worker]).iter().map(|it| it.line).collect();
    assert_eq!(lines, [3, 4]);
}
