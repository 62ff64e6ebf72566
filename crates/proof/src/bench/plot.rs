//! A report as a picture: one bar a figure, with its spread; for a ratio a line where it must reach. What
//! changes in the course of a case is a chart, with a line for each round.

mod course;

use std::fmt::Write as _;

use super::figures::{Figure, Wanted};
use super::report::{Report, ScenarioReport};

const WIDTH: u32 = 1_000;
const ROW: u32 = 22;
const HEAD: u32 = 34;
/// Where bars begin and end.
const FROM: f64 = 470.0;
const TO: f64 = 860.0;

/// A bar: how long it is, how far its spread goes, and where it must reach, on one scale.
struct Bar<'a> {
    figure: &'a Figure,
    wanted: Option<f64>,
    /// What is as long as the whole width.
    full: f64,
}

impl Report {
    /// An SVG document.
    #[must_use]
    pub fn plot(&self) -> String {
        let mut body = String::new();
        let mut y = 10;
        for scenario in &self.scenarios {
            y = draw(&mut body, scenario, y);
        }
        let style = "text{font:12px sans-serif}.h{font:bold 15px sans-serif}";
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y}\">\
             <style>{style}</style><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n"
        )
    }
}

/// Draws a scenario from there on and answers where the next one begins.
fn draw(body: &mut String, scenario: &ScenarioReport, from: u32) -> u32 {
    let mut y = from + HEAD;
    let name = escape(scenario.scenario);
    push(body, &format!("<text class=\"h\" x=\"10\" y=\"{}\">{name}</text>", from + 20));
    for bar in bars(scenario) {
        draw_bar(body, &bar, y);
        y += ROW;
    }
    for it in &scenario.courses {
        y = course::draw(body, it, y);
    }
    y + ROW / 2
}

/// Figures of one unit share one scale; a ratio has that of what it must reach.
fn bars(scenario: &ScenarioReport) -> Vec<Bar<'_>> {
    let full_of = |unit: &str| {
        let same = scenario.figures.iter().filter(|figure| figure.unit == unit);
        same.map(|figure| figure.highest).fold(0.0, f64::max)
    };
    let figures = scenario.figures.iter();
    let figures = figures.map(|figure| Bar { figure, wanted: None, full: full_of(figure.unit) });
    let targets = scenario.targets.iter().map(|target| {
        let wanted = match target.wanted {
            Wanted::AtLeast(wanted) | Wanted::AtMost(wanted) => Some(wanted),
            Wanted::Told => None,
        };
        let full = target.figure.highest.max(wanted.unwrap_or(0.0) * 1.5);
        Bar { figure: &target.figure, wanted, full }
    });
    figures.chain(targets).collect()
}

fn draw_bar(body: &mut String, bar: &Bar<'_>, y: u32) {
    let Figure { name, unit, median, lowest, highest, .. } = bar.figure;
    let full = if bar.full > 0.0 { bar.full } else { 1.0 };
    let at = |value: f64| FROM + (TO - FROM) * (value / full).clamp(0.0, 1.0);
    let (middle, text) = (y + ROW / 2, y + ROW / 2 + 4);
    let color = if bar.wanted.is_some() { "#3b7" } else { "#69b" };
    let name = escape(name);
    push(body, &format!("<text x=\"460\" y=\"{text}\" text-anchor=\"end\">{name}</text>"));
    push(
        body,
        &format!(
            "<rect x=\"{FROM}\" y=\"{}\" width=\"{:.1}\" height=\"14\" fill=\"{color}\"/>",
            y + 4,
            at(*median) - FROM
        ),
    );
    let spread = format!("x1=\"{:.1}\" x2=\"{:.1}\"", at(*lowest), at(*highest));
    push(body, &format!("<line {spread} y1=\"{middle}\" y2=\"{middle}\" stroke=\"#000\"/>"));
    if let Some(wanted) = bar.wanted {
        let x = at(wanted);
        let ends = format!("y1=\"{}\" y2=\"{}\"", y + 1, y + ROW - 1);
        push(
            body,
            &format!(
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" {ends} stroke=\"#c00\" stroke-width=\"2\"/>"
            ),
        );
    }
    let (value, unit) = (super::report::number(*median), escape(unit));
    push(body, &format!("<text x=\"870\" y=\"{text}\">{value} {unit}</text>"));
}

fn push(body: &mut String, element: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(body, "{element}");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::Figures;

    #[test]
    fn a_bar_has_its_length_on_the_scale_of_its_unit() {
        let mut figures = Figures::default();
        figures.add("a", "/s", 100.0);
        figures.add("b <", "/s", 50.0);
        figures.target("r", "", Wanted::AtLeast(0.5), 0.25);
        let (figures, targets) = figures.into_report();
        let (courses, notes) = (Vec::new(), Vec::new());
        let scenario =
            ScenarioReport { scenario: "s", seconds: 1.0, figures, targets, courses, notes };
        let mut body = String::new();
        draw(&mut body, &scenario, 0);
        let width = |value: f64| format!("width=\"{value:.1}\"");
        for expected in [width(390.0), width(195.0), width(130.0), "b &lt;".to_owned()] {
            assert!(body.contains(&expected), "{expected} in {body}");
        }
    }
}
