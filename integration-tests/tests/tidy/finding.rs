//! What a rule found, and how it is told.

use std::fmt;

/// One place that breaks a rule. Lines count from 1; what concerns a whole file is told on line 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) what: String,
}

impl Finding {
    pub(super) fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Findings as they are told, one line each.
pub(super) fn told(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

/// Fails the test with every finding, and with the reason of the rule.
#[track_caller]
pub(super) fn assert_none(findings: &[Finding], why: &str) {
    assert!(findings.is_empty(), "\n{}\nThe rule: {why}\n", told(findings).join("\n"));
}
