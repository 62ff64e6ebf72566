//! Lists: which part of them, and how they are answered.

use serde::Serialize;
use store::Page;

use crate::fields::{Fault, Fields};

/// How many rows a list has if nobody says.
const LIMIT_DEFAULT: u16 = 50;
/// The most rows of one answer.
const LIMIT_MAX: u16 = 250;

/// A list as it is answered. It will grow a `next_cursor`; for now a list ends with its first page.
#[derive(Debug, Serialize)]
pub(crate) struct List<T> {
    data: Vec<T>,
}

impl<T> List<T> {
    /// Renders each row.
    pub(crate) fn of<Row>(rows: Vec<Row>, render: impl FnMut(Row) -> T) -> Self {
        Self { data: rows.into_iter().map(render).collect() }
    }
}

/// Takes `limit` from the query.
pub(crate) fn take_page(fields: &mut Fields) -> Page {
    let limit = fields.optional("limit", parse_limit).unwrap_or(LIMIT_DEFAULT);
    Page { limit, before: None }
}

struct LimitOutOfRange;

impl Fault for LimitOutOfRange {
    fn code(&self) -> &'static str {
        "limit_out_of_range"
    }

    fn message(&self) -> String {
        format!("must be a whole number from 1 to {LIMIT_MAX}")
    }
}

fn parse_limit(text: &str) -> Result<u16, LimitOutOfRange> {
    // `parse` alone would take a sign.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(limit @ 1..=LIMIT_MAX) if digits => Ok(limit),
        _ => Err(LimitOutOfRange),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_1_to_250() {
        for (text, limit) in [("1", Some(1)), ("250", Some(250))] {
            assert_eq!(parse_limit(text).ok(), limit);
        }
        for text in ["0", "251", "65586", "-1", "+1", "1.0", " 1", "x", "", "99999999999"] {
            assert!(parse_limit(text).is_err(), "{text}");
        }
    }
}
