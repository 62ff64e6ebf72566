//! Lists: which part of them, and how they are answered.
//!
//! A list is ordered by id, the newest first. Its next part begins after the last id of this one, so
//! nothing is told twice, and nothing that was there at the start is left out, however many rows are of one
//! instant and whatever comes meanwhile. What commits later stands at the time it was made: who has read past
//! it finds it by reading again (`docs/adr/0029-lists-show-what-is-committed.md`).

use serde::Serialize;
use store::Page;
use uuid::Uuid;

pub(crate) use domain::cursor::Binding;
use domain::cursor::{Cursor, CursorMalformed};

use crate::fields::{Fault, Fields};
use crate::problem::{Code, Problem};

/// How many rows a list has if nobody says.
pub(crate) const LIMIT_DEFAULT: u16 = 50;
/// The most rows of one answer.
pub(crate) const LIMIT_MAX: u16 = 250;

/// A list as it is answered.
#[derive(Debug, Serialize)]
pub(crate) struct List<T> {
    data: Vec<T>,
    /// Names the next part; none at the end.
    next_cursor: Option<String>,
}

/// Which part of a list was asked for: `limit` and `cursor` of the query.
#[derive(Debug)]
pub(crate) struct Paging {
    limit: u16,
    cursor: Option<Cursor>,
}

impl Paging {
    /// Takes both from the query.
    pub(crate) fn take(fields: &mut Fields) -> Self {
        let limit = fields.optional("limit", parse_limit).unwrap_or(LIMIT_DEFAULT);
        Self { limit, cursor: fields.optional("cursor", Cursor::parse) }
    }

    /// What to ask the store for: a row more than is answered, which tells whether that was the end.
    /// A cursor of another list, filter or application is refused.
    pub(crate) fn page(&self, binding: Binding) -> Result<Page, Problem> {
        let before = match &self.cursor {
            Some(cursor) => {
                Some(cursor.last(binding).ok_or_else(|| Problem::new(Code::CursorInvalid))?)
            }
            None => None,
        };
        Ok(Page { limit: self.limit.saturating_add(1), before })
    }

    /// Renders what the store answered.
    pub(crate) fn list<Row, T>(
        &self,
        binding: Binding,
        mut rows: Vec<Row>,
        id: impl Fn(&Row) -> Uuid,
        render: impl FnMut(Row) -> T,
    ) -> List<T> {
        let more = rows.len() > usize::from(self.limit);
        rows.truncate(self.limit.into());
        let last = rows.last().filter(|_| more).map(id);
        let next_cursor = last.map(|last| Cursor::new(binding, last).to_text());
        List { data: rows.into_iter().map(render).collect(), next_cursor }
    }
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

impl Fault for CursorMalformed {
    fn code(&self) -> &'static str {
        "cursor_malformed"
    }

    fn message(&self) -> String {
        "must be a `next_cursor` as it was answered".to_owned()
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
