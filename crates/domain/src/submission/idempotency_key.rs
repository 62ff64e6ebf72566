//! The name that a producer gives to one submission, so that it can send it again safely.

use std::fmt;

/// The most bytes of an idempotency key: 255.
pub const KEY_BYTES_MAX: usize = 255;
/// The fewest bytes of a visitor's idempotency key: 16.
pub const VISITOR_KEY_BYTES_MIN: usize = 16;
/// What stands before a visitor's key.
const VISITOR_PREFIX: &str = "form:";
/// The most bytes of a visitor's idempotency key: 250.
pub const VISITOR_KEY_BYTES_MAX: usize = KEY_BYTES_MAX - VISITOR_PREFIX.len();

/// An idempotency key: 1 to 255 visible ASCII characters (`0x21` to `0x7E`).
///
/// The text is opaque and compared byte for byte. The quotes of a structured field string
/// (draft-ietf-httpapi-idempotency-key-header) are part of it. A longer key is refused and never
/// cut, so two keys that share a beginning are never taken for one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(String);

/// Why a value is not an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum IdempotencyKeyError {
    /// The key is present but empty.
    #[error("an idempotency key has 1 to {KEY_BYTES_MAX} characters, this one none")]
    Empty,
    /// The key is too long.
    #[error("an idempotency key has at most {limit} characters, this one {length}")]
    TooLong {
        /// The length in bytes.
        length: usize,
        /// [`KEY_BYTES_MAX`].
        limit: usize,
    },
    /// The key of a visitor is so short that another may choose it too.
    #[error("an idempotency key has at least {limit} characters here, this one {length}")]
    TooShort {
        /// The length in bytes.
        length: usize,
        /// [`VISITOR_KEY_BYTES_MIN`].
        limit: usize,
    },
    /// The key holds a space, a control character or a byte that is not ASCII.
    #[error("an idempotency key holds only visible ASCII characters, byte {position} is another")]
    NotVisibleAscii {
        /// The first such byte, counted from 0.
        position: usize,
    },
}

impl IdempotencyKeyError {
    /// The stable code of this error in answers of the API.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "idempotency_key_empty",
            Self::TooLong { .. } => "idempotency_key_too_long",
            Self::TooShort { .. } => "idempotency_key_too_short",
            Self::NotVisibleAscii { .. } => "idempotency_key_not_visible_ascii",
        }
    }
}

impl IdempotencyKey {
    /// Reads the value of the header as it was received, without mending anything.
    ///
    /// # Errors
    /// [`IdempotencyKeyError`], which names the limit.
    pub fn parse(value: &[u8]) -> Result<Self, IdempotencyKeyError> {
        match value.len() {
            0 => return Err(IdempotencyKeyError::Empty),
            1..=KEY_BYTES_MAX => {}
            length => {
                return Err(IdempotencyKeyError::TooLong { length, limit: KEY_BYTES_MAX });
            }
        }
        match value.iter().position(|byte| !byte.is_ascii_graphic()) {
            None => Ok(Self(value.iter().copied().map(char::from).collect())),
            Some(position) => Err(IdempotencyKeyError::NotVisibleAscii { position }),
        }
    }

    /// Reads the key that a visitor without an API key gives: 16 to 250 characters.
    ///
    /// All visitors of an endpoint share one space of keys, so a short one would meet that of another.
    /// It is not the space of callers with an API key: nobody can take the key that a producer is
    /// going to use.
    ///
    /// # Errors
    /// [`IdempotencyKeyError`], which names the limit.
    pub fn parse_of_visitor(value: &[u8]) -> Result<Self, IdempotencyKeyError> {
        let key = Self::parse(value)?;
        match key.0.len() {
            length @ ..VISITOR_KEY_BYTES_MIN => {
                Err(IdempotencyKeyError::TooShort { length, limit: VISITOR_KEY_BYTES_MIN })
            }
            VISITOR_KEY_BYTES_MIN..=VISITOR_KEY_BYTES_MAX => {
                Ok(Self(format!("{VISITOR_PREFIX}{}", key.0)))
            }
            length => Err(IdempotencyKeyError::TooLong { length, limit: VISITOR_KEY_BYTES_MAX }),
        }
    }

    /// The key, 1 to 255 visible ASCII characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Case C048.
    #[test]
    fn the_limit_is_255_bytes_and_nothing_is_cut() {
        for length in [1, 255] {
            let text = "k".repeat(length);
            assert_eq!(IdempotencyKey::parse(text.as_bytes()).unwrap().as_str(), text);
        }
        for length in [256, 1024, 8192, 16_384] {
            let refused = IdempotencyKey::parse("k".repeat(length).as_bytes()).unwrap_err();
            assert_eq!(refused, IdempotencyKeyError::TooLong { length, limit: 255 });
            assert_eq!(refused.code(), "idempotency_key_too_long");
        }
    }

    #[test]
    fn an_empty_key_is_not_an_absent_one() {
        let refused = IdempotencyKey::parse(b"").unwrap_err();
        assert_eq!(refused, IdempotencyKeyError::Empty);
        assert_eq!(refused.code(), "idempotency_key_empty");
    }

    #[test]
    fn the_first_character_that_is_not_visible_ascii_is_named() {
        for (value, position) in [
            (&b"   "[..], 0),
            (b"ab cd", 2),
            (b"abc\t", 3),
            (b"abc\r\nx: y", 3),
            (b"a\0", 1),
            (b"a\x7F", 1),
            ("schlüssel".as_bytes(), 4),
            (b"\xFF", 0),
        ] {
            let refused = IdempotencyKey::parse(value).unwrap_err();
            assert_eq!(refused, IdempotencyKeyError::NotVisibleAscii { position }, "{value:?}");
            assert_eq!(refused.code(), "idempotency_key_not_visible_ascii");
        }
    }

    #[test]
    fn keys_are_opaque() {
        let parse = |text: &str| IdempotencyKey::parse(text.as_bytes()).unwrap();
        assert_ne!(parse("a"), parse("A"));
        assert_ne!(parse("a"), parse("\"a\""));
        assert_eq!(parse("\"a\"").to_string(), "\"a\"");
    }

    #[test]
    fn a_visitors_key_has_16_to_250_characters_and_is_no_producers_key() {
        let parse = |length: usize| IdempotencyKey::parse_of_visitor("k".repeat(length).as_bytes());
        for length in [16, 250] {
            let key = parse(length).unwrap();
            assert_ne!(key, IdempotencyKey::parse("k".repeat(length).as_bytes()).unwrap());
            assert!(IdempotencyKey::parse(key.as_str().as_bytes()).is_ok(), "it can be stored");
        }
        let short = IdempotencyKeyError::TooShort { length: 15, limit: 16 };
        assert_eq!(parse(15), Err(short));
        assert_eq!(short.code(), "idempotency_key_too_short");
        assert_eq!(parse(251), Err(IdempotencyKeyError::TooLong { length: 251, limit: 250 }));
        assert_eq!(parse(0), Err(IdempotencyKeyError::Empty));
    }

    proptest! {
        #[test]
        fn exactly_the_visible_ascii_strings_are_keys(value in proptest::collection::vec(any::<u8>(), 0..300)) {
            let expected = (1..=255).contains(&value.len())
                && value.iter().all(|byte| (0x21..=0x7E).contains(byte));
            prop_assert_eq!(IdempotencyKey::parse(&value).is_ok(), expected);
        }
    }
}
