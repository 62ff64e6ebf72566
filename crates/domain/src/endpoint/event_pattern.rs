//! Which event types an endpoint asks for.
//!
//! Stored for fan-out, which does not exist yet: a submission to the endpoint itself is not filtered.

use crate::submission::EventType;
use crate::submission::content::EventTypeError;

/// The most patterns of an endpoint.
pub const EVENT_PATTERNS_MAX: usize = 100;

/// What ends a pattern that stands for all event types below it.
const BELOW: &str = ".*";

/// 1 to 100 patterns, each once: an event type, or one followed by `.*`, which stands for all event
/// types that go on after that full stop. Letter case matters.
///
/// An endpoint without patterns asks for everything. An empty list would ask for nothing, and is
/// refused, so that neither can be taken for the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventPatterns(Vec<String>);

/// Why a list is not one of patterns.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum EventPatternsError {
    /// The list is empty.
    #[error("must have at least one pattern; without the field all event types are asked for")]
    Empty,
    /// The list is longer than [`EVENT_PATTERNS_MAX`].
    #[error("must have at most {EVENT_PATTERNS_MAX} patterns, this one has {count}")]
    TooMany {
        /// How many were given.
        count: usize,
    },
    /// A pattern is neither an event type nor one followed by `.*`.
    #[error("pattern {position} is neither an event type nor one followed by `.*`: {source}")]
    Malformed {
        /// Which pattern, counted from 1.
        position: usize,
        /// What is wrong with it.
        source: EventTypeError,
    },
    /// A pattern is given more than once.
    #[error("pattern {position} is there already")]
    Repeated {
        /// Which pattern, counted from 1.
        position: usize,
    },
}

impl EventPatternsError {
    /// The stable code of this error in answers of the API.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "event_types_empty",
            Self::TooMany { .. } => "event_types_too_many",
            Self::Malformed { .. } => "event_type_pattern_malformed",
            Self::Repeated { .. } => "event_type_pattern_repeated",
        }
    }
}

impl EventPatterns {
    /// Reads the patterns, whose order is kept.
    ///
    /// # Errors
    /// [`EventPatternsError`], which names the limit.
    pub fn parse(patterns: Vec<String>) -> Result<Self, EventPatternsError> {
        match patterns.len() {
            0 => return Err(EventPatternsError::Empty),
            1..=EVENT_PATTERNS_MAX => {}
            count => return Err(EventPatternsError::TooMany { count }),
        }
        for ((index, pattern), position) in patterns.iter().enumerate().zip(1..) {
            let event_type = pattern.strip_suffix(BELOW).unwrap_or(pattern);
            EventType::parse(event_type)
                .map_err(|source| EventPatternsError::Malformed { position, source })?;
            if patterns.iter().take(index).any(|earlier| earlier == pattern) {
                return Err(EventPatternsError::Repeated { position });
            }
        }
        Ok(Self(patterns))
    }

    /// The patterns, 1 to [`EVENT_PATTERNS_MAX`] of them.
    #[must_use]
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(patterns: &[&str]) -> Result<EventPatterns, EventPatternsError> {
        EventPatterns::parse(patterns.iter().map(|&pattern| pattern.to_owned()).collect())
    }

    /// Case C085.
    #[test]
    fn a_pattern_is_an_event_type_or_all_below_one_and_nothing_asks_for_nothing() {
        for good in
            [&["user.created"][..], &["user.*"], &["user"], &["USER.created", "user.created"]]
        {
            assert_eq!(parse(good).unwrap().as_slice(), good);
        }
        for (bad, code) in [
            (&[][..], "event_types_empty"),
            (&[""], "event_type_pattern_malformed"),
            (&["*"], "event_type_pattern_malformed"),
            (&[".*"], "event_type_pattern_malformed"),
            (&["user.**"], "event_type_pattern_malformed"),
            (&["user.*.created"], "event_type_pattern_malformed"),
            (&["user*"], "event_type_pattern_malformed"),
            (&["user.*.*"], "event_type_pattern_malformed"),
            (&[" user.created"], "event_type_pattern_malformed"),
            (&["user.created", "user.created"], "event_type_pattern_repeated"),
        ] {
            assert_eq!(parse(bad).unwrap_err().code(), code, "{bad:?}");
        }
    }

    #[test]
    fn there_are_at_most_a_hundred_patterns() {
        let patterns = |count: u32| (0..count).map(|n| format!("event.n{n}")).collect::<Vec<_>>();
        assert!(EventPatterns::parse(patterns(100)).is_ok());
        let refused = EventPatterns::parse(patterns(101)).unwrap_err();
        assert_eq!(refused, EventPatternsError::TooMany { count: 101 });
    }
}
