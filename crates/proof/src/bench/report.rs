//! What was measured, as text for a person and as JSON for a program.

use std::fmt;

use serde::Serialize;

use super::figures::{Course, Figure, Target, Wanted};
use super::machine::Machine;
use super::{Plan, Scenario};

/// All scenarios of one run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What it ran on.
    pub machine: Machine,
    /// How it was measured.
    pub plan: PlanReport,
    /// What was measured.
    pub scenarios: Vec<ScenarioReport>,
}

/// How it was measured.
#[derive(Debug, Clone, Serialize)]
pub struct PlanReport {
    scenarios: Vec<&'static str>,
    duration_seconds: f64,
    rounds: u32,
    connections: usize,
    payload_bytes: usize,
    backlog: u64,
    rows: u64,
}

impl PlanReport {
    pub(super) fn of(plan: &Plan) -> Self {
        Self {
            scenarios: plan.scenarios.iter().copied().map(Scenario::name).collect(),
            duration_seconds: plan.duration.as_secs_f64(),
            rounds: plan.rounds,
            connections: plan.connections,
            payload_bytes: plan.payloads.of(0).len(),
            backlog: plan.backlog,
            rows: plan.rows,
        }
    }
}

/// One scenario.
#[derive(Debug, Clone, Serialize)]
pub struct ScenarioReport {
    /// Its name.
    pub scenario: &'static str,
    /// How long it took.
    pub seconds: f64,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Its ratios, beside what they must reach.
    pub targets: Vec<Target>,
    /// What changes while a case runs.
    pub courses: Vec<Course>,
    /// What a reader has to know.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether every target is met.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.scenarios.iter().flat_map(|it| &it.targets).all(|target| target.met != Some(false))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { processors, processor, load_before, postgres, sees_postgres } = &self.machine;
        let processor = processor.as_deref().unwrap_or("unknown");
        writeln!(f, "{processors} processors ({processor})")?;
        if let Some(load) = load_before {
            writeln!(f, "load before the run {load}")?;
        }
        for (name, value) in postgres {
            write!(f, "{name} {value}  ")?;
        }
        if !postgres.is_empty() {
            writeln!(f)?;
        }
        if !postgres.is_empty() && !sees_postgres {
            writeln!(f, "PostgreSQL's processes cannot be seen: their CPU is left out")?;
        }
        for scenario in &self.scenarios {
            write!(f, "\n{scenario}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ScenarioReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({:.0} s)", self.scenario, self.seconds)?;
        for figure in &self.figures {
            writeln!(f, "  {}", line(figure))?;
        }
        for target in &self.targets {
            let verdict = match (target.wanted, target.met) {
                (Wanted::AtLeast(wanted), Some(true)) => format!("at least {wanted}: met"),
                (Wanted::AtLeast(wanted), _) => format!("at least {wanted}: MISSED"),
                (Wanted::AtMost(wanted), Some(true)) => format!("at most {wanted}: met"),
                (Wanted::AtMost(wanted), _) => format!("at most {wanted}: MISSED"),
                (Wanted::Told, _) => String::new(),
            };
            writeln!(f, "= {}  {verdict}", line(&target.figure))?;
        }
        for note in &self.notes {
            writeln!(f, "  {note}")?;
        }
        Ok(())
    }
}

fn line(figure: &Figure) -> String {
    let (median, lowest, highest) =
        (number(figure.median), number(figure.lowest), number(figure.highest));
    let Figure { name, unit, .. } = figure;
    format!("{name:<58} {median:>10} {unit:<10} ({lowest} to {highest})")
}

/// With as many digits as mean something.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_mean_something() {
        let told: Vec<String> = [0.523, 12.34, 5_214.7].map(number).into();
        assert_eq!(told, ["0.52", "12.3", "5215"]);
    }
}
