//! The kind of event that a submission tells of.

use std::fmt;

/// The most bytes of an event type: 128.
pub const EVENT_TYPE_BYTES_MAX: usize = 128;

/// The kind of event, 1 to 128 bytes: identifiers of `a-z`, `A-Z`, `0-9`, `_` and `-`, separated by
/// single full stops.
///
/// Standard Webhooks, "Event types", recommends it without the hyphen, which is in wide use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventType(String);

/// Why a text is not an event type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum EventTypeError {
    /// The text is empty.
    #[error("an event type has 1 to {EVENT_TYPE_BYTES_MAX} bytes, this one none")]
    Empty,
    /// The text is too long.
    #[error("an event type has at most {limit} bytes, this one {length}")]
    TooLong {
        /// The length in bytes.
        length: usize,
        /// [`EVENT_TYPE_BYTES_MAX`].
        limit: usize,
    },
    /// The text holds a character that no identifier has.
    #[error(
        "an event type holds only a-z, A-Z, 0-9, `_`, `-` and full stops, byte {position} is another"
    )]
    ForbiddenCharacter {
        /// The first such byte, counted from 0.
        position: usize,
    },
    /// The text starts or ends with a full stop, or two of them meet.
    #[error(
        "an event type has an identifier on either side of a full stop, none at byte {position}"
    )]
    EmptyIdentifier {
        /// Where the first missing identifier would be, in bytes from 0.
        position: usize,
    },
}

impl EventTypeError {
    /// The stable code of this error in answers of the API.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "event_type_empty",
            Self::TooLong { .. } => "event_type_too_long",
            Self::ForbiddenCharacter { .. } => "event_type_forbidden_character",
            Self::EmptyIdentifier { .. } => "event_type_empty_identifier",
        }
    }
}

impl EventType {
    /// What a form tells of: `form.submitted`.
    #[must_use]
    pub fn of_form() -> Self {
        Self(String::from("form.submitted"))
    }

    /// Reads an event type. Letter case matters.
    ///
    /// # Errors
    /// [`EventTypeError`], which names the limit.
    pub fn parse(text: &str) -> Result<Self, EventTypeError> {
        match text.len() {
            0 => return Err(EventTypeError::Empty),
            1..=EVENT_TYPE_BYTES_MAX => {}
            length => {
                return Err(EventTypeError::TooLong { length, limit: EVENT_TYPE_BYTES_MAX });
            }
        }
        let mut after_stop = true;
        for (position, byte) in text.bytes().enumerate() {
            match byte {
                b'.' if after_stop => return Err(EventTypeError::EmptyIdentifier { position }),
                b'.' => after_stop = true,
                b'_' | b'-' => after_stop = false,
                _ if byte.is_ascii_alphanumeric() => after_stop = false,
                _ => return Err(EventTypeError::ForbiddenCharacter { position }),
            }
        }
        if after_stop {
            return Err(EventTypeError::EmptyIdentifier { position: text.len() });
        }
        Ok(Self(text.to_owned()))
    }

    /// The event type, 1 to 128 bytes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_separated_by_full_stops_are_event_types() {
        for text in ["a", "user.created", "Invoice.line_item.paid-2", "_", "-", "0.1.2"] {
            assert_eq!(EventType::parse(text).unwrap().as_str(), text);
            assert_eq!(EventType::parse(text).unwrap().to_string(), text);
        }
        assert_ne!(EventType::parse("a"), EventType::parse("A"));
    }

    #[test]
    fn a_missing_identifier_is_refused_where_it_would_be() {
        for (text, position) in [(".", 0), (".a", 0), ("a..b", 2), ("a.b.", 4)] {
            let refused = EventType::parse(text).unwrap_err();
            assert_eq!(refused, EventTypeError::EmptyIdentifier { position }, "{text}");
            assert_eq!(refused.code(), "event_type_empty_identifier");
        }
    }

    #[test]
    fn the_first_forbidden_character_is_named() {
        for (text, position) in
            [("user created", 4), ("a.*", 2), ("a/b", 1), ("größe", 2), ("a\0", 1)]
        {
            let refused = EventType::parse(text).unwrap_err();
            assert_eq!(refused, EventTypeError::ForbiddenCharacter { position }, "{text}");
            assert_eq!(refused.code(), "event_type_forbidden_character");
        }
    }

    #[test]
    fn the_limit_is_128_bytes() {
        assert_eq!(EventType::parse(""), Err(EventTypeError::Empty));
        assert!(EventType::parse(&"a".repeat(128)).is_ok());
        assert_eq!(
            EventType::parse(&"a".repeat(129)),
            Err(EventTypeError::TooLong { length: 129, limit: 128 })
        );
    }
}
