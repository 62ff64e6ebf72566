//! What came out, for people and for machines.

use std::fmt;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use serde_json::{Map, Value};

use super::check::{Check, Round};
use super::surroundings::Surroundings;
use crate::ground::Ground;

/// How wide the table is, in characters.
const TABLE_WIDTH: u16 = 110;

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every round kept the promise, and the control broke it (or was not asked for).
    Holds,
    /// A round broke the promise.
    Violated,
    /// Nothing is proven: the race did not run to its end, or its control broke nothing.
    Inconclusive,
}

impl Verdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Violated => "VIOLATED",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// What the naive form came to.
#[derive(Debug, Clone, Serialize)]
pub struct ControlReport {
    /// What it does.
    pub tried: &'static str,
    /// What it left behind.
    pub observed: String,
    /// Whether it broke the promise, as it must.
    pub violated: bool,
}

impl ControlReport {
    pub(super) fn of(tried: &'static str, round: anyhow::Result<Round>) -> Self {
        match round {
            Ok(round) => Self { tried, violated: !round.holds, observed: round.observed },
            // An error is no violation: it hides whether there would have been one.
            Err(error) => Self { tried, violated: false, observed: format!("{error:#}") },
        }
    }
}

/// One check.
#[derive(Debug, Clone, Serialize)]
pub struct CheckReport {
    /// What `--only` calls it.
    pub name: &'static str,
    /// Its number in `docs/GUARANTEES.md`.
    pub guarantee: &'static str,
    /// What one round does.
    pub tried: String,
    /// How many rounds were run to their end.
    pub rounds: u32,
    /// What must be so after a round.
    pub expected: String,
    /// What was so after the round that tells most: the first bad one, or the last.
    pub observed: String,
    /// The negative control; none if it was not asked for.
    pub control: Option<ControlReport>,
    /// What is to be thought of it.
    pub verdict: Verdict,
    /// What only this check tells.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl CheckReport {
    pub(super) fn of(check: &dyn Check, ground: &Ground) -> Self {
        Self {
            name: check.name(),
            guarantee: check.guarantee(),
            tried: check.tried(ground),
            rounds: 0,
            expected: String::new(),
            observed: "no round was run".to_owned(),
            control: None,
            verdict: Verdict::Inconclusive,
            fields: Map::new(),
        }
    }

    /// Takes a round. Answers whether another one can tell more.
    pub(super) fn add(&mut self, round: anyhow::Result<Round>) -> bool {
        match round {
            Ok(round) => {
                self.rounds += 1;
                self.verdict = if round.holds { Verdict::Holds } else { Verdict::Violated };
                self.expected = round.expected;
                self.observed = round.observed;
                self.fields = round.fields;
            }
            Err(error) => {
                self.verdict = Verdict::Inconclusive;
                self.observed = format!("{error:#}");
            }
        }
        self.verdict == Verdict::Holds
    }

    /// With what the control says about it.
    pub(super) fn judged(mut self) -> Self {
        let silent = self.control.as_ref().is_some_and(|control| !control.violated);
        if silent && self.verdict == Verdict::Holds {
            self.verdict = Verdict::Inconclusive;
        }
        self
    }

    /// The last word in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let word = if self.verdict == Verdict::Holds { "PASS" } else { "FAIL" };
        format!("{}: {}: {word}", self.name, self.observed)
    }
}

/// All checks, and where they ran.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `postgres` or `sqlite`.
    pub engine: &'static str,
    /// Its version.
    pub version: String,
    /// The isolation that statements run under.
    pub isolation: String,
    /// What may surprise whoever relies on this database.
    pub warnings: Vec<String>,
    /// Each check, in the order asked for.
    pub checks: Vec<CheckReport>,
    /// Whether all of them hold.
    pub holds: bool,
}

impl Report {
    pub(super) fn new(surroundings: Surroundings, checks: Vec<CheckReport>) -> Self {
        let holds = !checks.is_empty() && checks.iter().all(|it| it.verdict == Verdict::Holds);
        let Surroundings { engine, version, isolation, warnings, .. } = surroundings;
        Self { engine, version, isolation, warnings, checks, holds }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}, {}", self.engine, self.version, self.isolation)?;
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL);
        table.set_width(TABLE_WIDTH);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["", "check", "expected", "observed", "naive form", "verdict"]);
        for check in &self.checks {
            let control = check.control.as_ref().map_or("not run", |it| it.observed.as_str());
            let cells = [check.guarantee, check.name, &check.expected, &check.observed, control];
            table.add_row(cells.into_iter().chain([check.verdict.as_str()]));
        }
        writeln!(f, "{table}")?;
        for check in self.checks.iter().filter(|check| !check.fields.is_empty()) {
            writeln!(f, "{}", check.line())?;
        }
        let held = self.checks.iter().filter(|it| it.verdict == Verdict::Holds).count();
        write!(f, "{held} of {} hold", self.checks.len())?;
        let unseen = |it: &&CheckReport| it.control.as_ref().is_some_and(|it| !it.violated);
        for check in self.checks.iter().filter(unseen) {
            write!(
                f,
                "\n{}: the naive form broke nothing, so the race proves nothing",
                check.name
            )?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    fn started() -> CheckReport {
        CheckReport {
            name: "claim",
            guarantee: "G1",
            tried: String::new(),
            rounds: 0,
            expected: String::new(),
            observed: String::new(),
            control: None,
            verdict: Verdict::Inconclusive,
            fields: Map::new(),
        }
    }

    fn with_control(round: anyhow::Result<Round>, control: anyhow::Result<Round>) -> Verdict {
        let mut report = started();
        report.add(round);
        report.control = Some(ControlReport::of("", control));
        report.judged().verdict
    }

    fn kept() -> Round {
        Round::of("1", "1")
    }

    fn broken() -> Round {
        Round::of("1", "2")
    }

    #[test]
    fn a_check_holds_if_it_was_kept_and_its_control_was_broken() {
        assert_eq!(with_control(Ok(kept()), Ok(broken())), Verdict::Holds);
        let mut without = started();
        without.add(Ok(kept()));
        assert_eq!(without.judged().verdict, Verdict::Holds, "no control was asked for");
    }

    #[test]
    fn a_control_that_shows_nothing_makes_a_check_inconclusive() {
        assert_eq!(with_control(Ok(kept()), Ok(kept())), Verdict::Inconclusive);
        assert_eq!(with_control(Ok(kept()), Err(anyhow!("lost"))), Verdict::Inconclusive);
    }

    #[test]
    fn a_broken_promise_is_violated_whatever_the_control_shows() {
        assert_eq!(with_control(Ok(broken()), Ok(broken())), Verdict::Violated);
        assert_eq!(with_control(Ok(broken()), Ok(kept())), Verdict::Violated);
    }

    #[test]
    fn a_race_that_did_not_end_proves_nothing_and_no_round_neither() {
        assert_eq!(with_control(Err(anyhow!("lost")), Ok(broken())), Verdict::Inconclusive);
        assert_eq!(started().judged().verdict, Verdict::Inconclusive);
    }

    #[test]
    fn the_first_bad_round_is_the_one_that_is_told() {
        let mut report = started();
        assert!(report.add(Ok(kept())));
        assert!(!report.add(Ok(broken())), "no further round is wanted");
        assert_eq!((report.rounds, report.observed.as_str()), (2, "2"));
    }

    #[test]
    fn all_hold_only_if_each_does_and_there_is_one() {
        let surroundings = || Surroundings {
            engine: "postgres",
            version: String::new(),
            isolation: String::new(),
            warnings: Vec::new(),
            crowd: crate::ground::Crowd { asked: 2, stores: 2, connections: 2 },
        };
        let holding = || CheckReport { verdict: Verdict::Holds, ..started() };
        assert!(Report::new(surroundings(), vec![holding()]).holds);
        assert!(!Report::new(surroundings(), Vec::new()).holds);
        for verdict in [Verdict::Violated, Verdict::Inconclusive] {
            let other = CheckReport { verdict, ..started() };
            assert!(!Report::new(surroundings(), vec![holding(), other]).holds);
        }
    }
}
