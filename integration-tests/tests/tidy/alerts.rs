//! The alert rules ask for what there is, and somebody says what to do.

use std::collections::BTreeSet;

use anyhow::Context as _;
use process::metrics::{ALL, Kind};
use promql_parser::parser::{Expr, VectorSelector, parse};
use promql_parser::util::{ExprVisitor, walk_expr};
use serde::Deserialize;

use super::finding::{Finding, assert_none, told};
use super::repository;

const RULES: &str = "docs/alerts.yaml";
const OPERATIONS: &str = "docs/OPERATIONS.md";

/// The labels that metrics have, with those that Prometheus adds.
const LABELS: &[&str] =
    &["result", "route", "status", "outcome", "reason", "le", "job", "instance"];

#[derive(Debug, Deserialize)]
struct File {
    groups: Vec<Group>,
}

#[derive(Debug, Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
struct Rule {
    alert: String,
    expr: String,
    annotations: Annotations,
}

#[derive(Debug, Deserialize)]
struct Annotations {
    summary: String,
}

/// The selectors of a query.
#[derive(Default)]
struct Selectors(Vec<VectorSelector>);

impl ExprVisitor for Selectors {
    type Error = std::convert::Infallible;

    fn pre_visit(&mut self, expr: &Expr) -> Result<bool, Self::Error> {
        match expr {
            Expr::VectorSelector(selector) => self.0.push(selector.clone()),
            Expr::MatrixSelector(selector) => self.0.push(selector.vs.clone()),
            _ => {}
        }
        Ok(true)
    }
}

/// The names under which Prometheus stores what the metrics tell.
fn series() -> BTreeSet<String> {
    let names = |metric: &process::metrics::Metric| match metric.kind {
        Kind::Counter | Kind::Gauge => vec![metric.name.to_owned()],
        Kind::Seconds | Kind::Sizes => {
            ["bucket", "sum", "count"].map(|part| format!("{}_{part}", metric.name)).into()
        }
    };
    ALL.iter().flat_map(names).collect()
}

fn unanswerable(rules: &[Rule], operations: &str) -> Vec<Finding> {
    let series = series();
    let mut findings = Vec::new();
    for rule in rules {
        let mut find = |what: String| {
            findings.push(Finding::new(RULES, 1, format!("{}: {what}", rule.alert)));
        };
        if !operations.contains(&format!("### {}\n", rule.alert)) {
            find(format!("{OPERATIONS} has no section that says what to do"));
        }
        if rule.annotations.summary.is_empty() {
            find("has no summary".to_owned());
        }
        let query = match parse(&rule.expr) {
            Ok(query) => query,
            Err(error) => {
                find(format!("is no query: {error}"));
                continue;
            }
        };
        let mut selectors = Selectors::default();
        let Ok(_) = walk_expr(&mut selectors, &query);
        if selectors.0.is_empty() {
            find("asks for nothing".to_owned());
        }
        for VectorSelector { name, matchers, .. } in selectors.0 {
            let name = name.unwrap_or_default();
            if !series.contains(&name) {
                find(format!("no process shows {name:?}"));
            }
            for matcher in matchers.matchers {
                if !LABELS.contains(&matcher.name.as_str()) {
                    find(format!("no metric has the label {}", matcher.name));
                }
            }
        }
    }
    findings
}

#[test]
fn every_alert_asks_for_metrics_that_are_shown_and_has_its_runbook() -> anyhow::Result<()> {
    let text = std::fs::read_to_string(repository::root().join(RULES))?;
    let file: File = serde_norway::from_str(&text).context(RULES)?;
    let rules: Vec<Rule> = file.groups.into_iter().flat_map(|group| group.rules).collect();
    assert!(rules.len() >= 5, "the rule would hold vacuously");
    let operations = std::fs::read_to_string(repository::root().join(OPERATIONS))?;
    let why = "an alert that asks for what is not there never rings, and one without a runbook helps nobody";
    assert_none(&unanswerable(&rules, &operations), why);
    Ok(())
}

#[test]
fn a_misspelt_metric_label_or_query_is_found() {
    let rule = |alert: &str, expr: &str| Rule {
        alert: alert.to_owned(),
        expr: expr.to_owned(),
        annotations: Annotations { summary: "x".to_owned() },
    };
    let rules = [
        rule("Good", "sum(rate(fencepost_attempts_total{outcome=\"2xx\"}[5m])) > 1"),
        rule("Name", "sum(rate(fencepost_attempt_total[5m])) > 1"),
        rule("Label", "fencepost_failed_total{why=\"gone\"} > 1"),
        rule("Histogram", "fencepost_claim_seconds > 1"),
        rule("Query", "sum(fencepost_due"),
    ];
    let operations = "### Good\n### Name\n### Label\n### Histogram\n";
    let findings = unanswerable(&rules, operations);
    let found = told(&findings);
    assert_eq!(
        found[..4],
        [
            "docs/alerts.yaml:1: Name: no process shows \"fencepost_attempt_total\"",
            "docs/alerts.yaml:1: Label: no metric has the label why",
            "docs/alerts.yaml:1: Histogram: no process shows \"fencepost_claim_seconds\"",
            "docs/alerts.yaml:1: Query: docs/OPERATIONS.md has no section that says what to do",
        ]
    );
    assert!(found[4].contains("Query: is no query"), "{found:?}");
}
