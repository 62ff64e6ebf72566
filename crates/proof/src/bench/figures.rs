//! Figures of several rounds: their medians, their spread, and whether a ratio reaches what it must.

use serde::Serialize;

use super::arithmetic::median;

/// One figure in all rounds.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// In what.
    pub unit: &'static str,
    /// The middle one of the rounds.
    pub median: f64,
    /// The lowest one.
    pub lowest: f64,
    /// The highest one.
    pub highest: f64,
    /// Each one.
    pub rounds: Vec<f64>,
}

/// What a ratio must reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// So much or more.
    AtLeast(f64),
    /// So much or less.
    AtMost(f64),
    /// Nothing: it is told.
    Told,
}

impl Wanted {
    fn is_met_by(self, value: f64) -> Option<bool> {
        match self {
            Self::AtLeast(wanted) => Some(value >= wanted),
            Self::AtMost(wanted) => Some(value <= wanted),
            Self::Told => None,
        }
    }
}

/// A figure beside what it must reach.
#[derive(Debug, Clone, Serialize)]
pub struct Target {
    /// The figure or ratio.
    #[serde(flatten)]
    pub figure: Figure,
    /// What it must reach.
    pub wanted: Wanted,
    /// Whether its median does. None where nothing is wanted.
    pub met: Option<bool>,
}

/// How something went in the course of a case.
#[derive(Debug, Clone, Serialize)]
pub struct Course {
    /// What was measured.
    pub name: String,
    /// In what.
    pub unit: &'static str,
    /// For each round, seconds since the case began with what was so then.
    pub rounds: Vec<Vec<(f64, f64)>>,
}

/// Figures as they are measured, round by round.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) courses: Vec<Course>,
    values: Vec<(String, &'static str, Vec<f64>)>,
    targets: Vec<(String, &'static str, Wanted, Vec<f64>)>,
}

impl Figures {
    pub(super) fn add(&mut self, name: impl Into<String>, unit: &'static str, value: f64) {
        let name = name.into();
        match self.values.iter_mut().find(|(other, ..)| *other == name) {
            Some((_, _, rounds)) => rounds.push(value),
            None => self.values.push((name, unit, vec![value])),
        }
    }

    /// What cannot be seen on this machine is left out.
    pub(super) fn add_if(&mut self, name: impl Into<String>, unit: &'static str, it: Option<f64>) {
        if let Some(value) = it {
            self.add(name, unit, value);
        }
    }

    pub(super) fn target(
        &mut self,
        name: impl Into<String>,
        unit: &'static str,
        wanted: Wanted,
        value: f64,
    ) {
        let name = name.into();
        match self.targets.iter_mut().find(|(other, ..)| *other == name) {
            Some((_, _, _, rounds)) => rounds.push(value),
            None => self.targets.push((name, unit, wanted, vec![value])),
        }
    }

    pub(super) fn course(&mut self, name: &str, unit: &'static str, points: Vec<(f64, f64)>) {
        match self.courses.iter_mut().find(|other| other.name == name) {
            Some(course) => course.rounds.push(points),
            None => {
                self.courses.push(Course { name: name.to_owned(), unit, rounds: vec![points] });
            }
        }
    }

    pub(super) fn into_report(self) -> (Vec<Figure>, Vec<Target>) {
        let figures = self.values.into_iter();
        let figures = figures.filter_map(|(name, unit, rounds)| figure(name, unit, rounds));
        let targets = self.targets.into_iter().filter_map(|(name, unit, wanted, rounds)| {
            let figure = figure(name, unit, rounds)?;
            let met = wanted.is_met_by(figure.median);
            Some(Target { figure, wanted, met })
        });
        (figures.collect(), targets.collect())
    }
}

/// None without a round.
fn figure(name: String, unit: &'static str, rounds: Vec<f64>) -> Option<Figure> {
    let median = median(&rounds)?;
    let lowest = rounds.iter().copied().min_by(f64::total_cmp)?;
    let highest = rounds.iter().copied().max_by(f64::total_cmp)?;
    Some(Figure { name, unit, median, lowest, highest, rounds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_one_name_are_one_figure_with_its_spread() {
        let mut figures = Figures::default();
        for (rate, cost) in [(10.0, Some(1.0)), (30.0, None), (20.0, Some(3.0))] {
            figures.add("rate", "1/s", rate);
            figures.add_if("cost", "µs", cost);
        }
        let (figures, targets) = figures.into_report();
        let told: Vec<_> = figures
            .iter()
            .map(|it| (it.name.as_str(), it.lowest, it.median, it.highest, it.rounds.len()))
            .collect();
        assert_eq!(told, [("rate", 10.0, 20.0, 30.0, 3), ("cost", 1.0, 2.0, 3.0, 2)]);
        assert!(targets.is_empty());
    }

    #[test]
    fn a_target_is_met_by_its_median_and_not_by_its_best_round() {
        let met = |wanted, rounds: &[f64]| {
            let mut figures = Figures::default();
            for value in rounds {
                figures.target("a", "", wanted, *value);
            }
            figures.into_report().1.first().and_then(|target| target.met)
        };
        assert_eq!(met(Wanted::AtLeast(0.5), &[0.4, 0.49, 0.9]), Some(false));
        assert_eq!(met(Wanted::AtLeast(0.5), &[0.4, 0.5, 0.9]), Some(true));
        assert_eq!(met(Wanted::AtMost(300.0), &[100.0, 301.0, 302.0]), Some(false));
        assert_eq!(met(Wanted::AtMost(300.0), &[300.0]), Some(true));
        assert_eq!(met(Wanted::Told, &[1.0]), None);
    }
}
