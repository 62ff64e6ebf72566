//! Every step of CI is a recipe that a person can run.

use super::finding::{Finding, assert_none};
use super::repository;

fn steps_without_a_recipe(ci: &str, justfile: &str) -> Vec<Finding> {
    let recipes: Vec<&str> = justfile.lines().map(str::trim).collect();
    let steps = cargo_steps(ci);
    steps
        .filter(|(_, command)| !recipes.iter().any(|recipe| recipe.ends_with(command)))
        .map(|(line, command)| {
            Finding::new(".ci/run", line, format!("no recipe of the justfile runs `{command}`"))
        })
        .collect()
}

/// The `step "…" cargo …` lines, but for the one that only fetches what the others compile.
fn cargo_steps(ci: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = (1..).zip(ci.lines().map(str::trim));
    let steps = numbered.filter(|(_, line)| line.starts_with("step "));
    let commands =
        steps.filter_map(|(number, line)| Some((number, line.get(line.find("cargo ")?..)?)));
    commands.filter(|(_, command)| !command.starts_with("cargo fetch"))
}

#[test]
fn every_step_of_ci_is_a_recipe() -> anyhow::Result<()> {
    let ci = repository::text(".ci/run")?.unwrap_or_default();
    let justfile = repository::text("justfile")?.unwrap_or_default();
    assert!(
        cargo_steps(&ci).next().is_some(),
        ".ci/run has no step: the rule would hold vacuously"
    );
    let findings = steps_without_a_recipe(&ci, &justfile);
    assert_none(&findings, "what CI refuses, a person must be able to see without CI");
    Ok(())
}

#[test]
fn a_step_that_no_recipe_runs_is_found() {
    let ci = "step \"Get\" cargo fetch\nstep \"Test\" cargo test\n  \
              step \"Doc\" env A=\"b\" cargo doc -q\n";
    let justfile = "docs:\n    A=\"b\" cargo doc -q\ntest:\n    cargo test -p one\n";
    assert_eq!(
        steps_without_a_recipe(ci, justfile),
        [Finding::new(".ci/run", 2, "no recipe of the justfile runs `cargo test`")]
    );
}
