//! The chart of what changes in the course of a case.

use super::{FROM, HEAD, ROW, TO, escape, push};
use crate::bench::figures::Course;
use crate::bench::report::number;

const HEIGHT: u32 = 120;

/// Draws it from there on and answers where the next thing begins. A course of nothing is not drawn.
pub(super) fn draw(body: &mut String, course: &Course, from: u32) -> u32 {
    let points = || course.rounds.iter().flatten();
    let last = points().map(|(at, _)| *at).fold(0.0, f64::max);
    let highest = points().map(|(_, value)| *value).fold(0.0, f64::max);
    if last <= 0.0 {
        return from;
    }
    let (top, bottom) = (from + ROW / 2, from + ROW / 2 + HEIGHT);
    let name = escape(&course.name);
    let middle = top + HEIGHT / 2;
    push(body, &format!("<text x=\"460\" y=\"{middle}\" text-anchor=\"end\">{name}</text>"));
    let width = TO - FROM;
    push(
        body,
        &format!(
            "<rect x=\"{FROM}\" y=\"{top}\" width=\"{width}\" height=\"{HEIGHT}\" fill=\"none\" \
             stroke=\"#999\"/>"
        ),
    );
    let across = |at: f64| FROM + width * (at / last);
    // Nothing ever lies on the ground, also where nothing is all there is.
    let up = |value: f64| f64::from(bottom) - f64::from(HEIGHT) * (value / highest.max(1.0));
    for round in &course.rounds {
        let line: Vec<String> = round
            .iter()
            .map(|(at, value)| format!("{:.1},{:.1}", across(*at), up(*value)))
            .collect();
        let line = line.join(" ");
        push(body, &format!("<polyline points=\"{line}\" fill=\"none\" stroke=\"#369\"/>"));
    }
    let (highest, unit, last) = (number(highest.max(1.0)), escape(course.unit), number(last));
    push(body, &format!("<text x=\"870\" y=\"{}\">{highest} {unit}</text>", top + 10));
    push(body, &format!("<text x=\"870\" y=\"{bottom}\">0, after {last} s</text>"));
    bottom + HEAD / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(rounds: Vec<Vec<(f64, f64)>>) -> (String, u32) {
        let mut body = String::new();
        let course = Course { name: "queue <".to_owned(), unit: "", rounds };
        let next = draw(&mut body, &course, 100);
        (body, next)
    }

    #[test]
    fn a_round_is_a_line_from_the_ground_to_the_highest_point_of_all() {
        let (body, next) =
            drawn(vec![vec![(0.0, 0.0), (2.0, 50.0)], vec![(0.0, 0.0), (2.0, 100.0)]]);
        for expected in ["470.0,231.0 860.0,171.0", "470.0,231.0 860.0,111.0", "queue &lt;"] {
            assert!(body.contains(expected), "{expected} in {body}");
        }
        assert_eq!(next, 248);
    }

    #[test]
    fn a_course_of_nothing_takes_no_room() {
        assert_eq!(drawn(vec![Vec::new()]), (String::new(), 100));
    }
}
