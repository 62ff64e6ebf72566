//! What names an inbound event: its source, and the id that the sender gave it.

use crate::label::{LABEL_CHARACTERS_MAX, Label};

/// The most bytes of an event's id.
pub const EVENT_ID_BYTES_MAX: usize = 255;

/// Which event it is. Copies of one event have the same key, compared byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReceiptKey {
    source: String,
    event_id: String,
}

/// Why something names no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptKeyError {
    /// The source has no characters, too many, or control characters.
    #[error("the source must have 1 to {LABEL_CHARACTERS_MAX} characters, no control characters")]
    Source,
    /// The id has no bytes, too many, or control characters.
    #[error("the event id must have 1 to {EVENT_ID_BYTES_MAX} bytes, no control characters")]
    EventId,
}

impl ReceiptKey {
    /// Takes both as they stand. An id that is too long is refused and never cut: two events would
    /// be taken for one.
    pub fn new(source: &str, event_id: &str) -> Result<Self, ReceiptKeyError> {
        if Label::parse(source).is_err() {
            return Err(ReceiptKeyError::Source);
        }
        let fits = (1..=EVENT_ID_BYTES_MAX).contains(&event_id.len());
        if !fits || event_id.chars().any(char::is_control) {
            return Err(ReceiptKeyError::EventId);
        }
        Ok(Self { source: source.to_owned(), event_id: event_id.to_owned() })
    }

    /// Where it came from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What the sender calls it.
    #[must_use]
    pub fn event_id(&self) -> &str {
        &self.event_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_and_an_id_of_1_to_255_bytes_name_an_event() {
        let long = "é".repeat(127);
        let key = ReceiptKey::new("github", &long).unwrap();
        assert_eq!((key.source(), key.event_id()), ("github", long.as_str()));
        for (source, event_id, why) in [
            ("", "1", ReceiptKeyError::Source),
            ("a\0", "1", ReceiptKeyError::Source),
            ("a", "", ReceiptKeyError::EventId),
            ("a", "1\0", ReceiptKeyError::EventId),
            ("a", &"é".repeat(128), ReceiptKeyError::EventId),
        ] {
            assert_eq!(ReceiptKey::new(source, event_id), Err(why), "{source:?} {event_id:?}");
        }
    }
}
