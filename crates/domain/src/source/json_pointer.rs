//! A place in a JSON document (RFC 6901).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The most bytes of a pointer.
const POINTER_BYTES_MAX: usize = 256;

/// A pointer such as `/data/id`: names and positions, each behind a slash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JsonPointer(String);

/// The text is no pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a JSON pointer starts with a slash and has at most {POINTER_BYTES_MAX} bytes")]
pub struct JsonPointerError;

impl JsonPointer {
    /// Takes the text of a pointer.
    ///
    /// # Errors
    /// [`JsonPointerError`].
    pub fn parse(text: &str) -> Result<Self, JsonPointerError> {
        let escapes = text.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
        if text.starts_with('/') && text.len() <= POINTER_BYTES_MAX && escapes {
            Ok(Self(text.to_owned()))
        } else {
            Err(JsonPointerError)
        }
    }

    /// The text or the number that stands there: a text unescaped, a number digit for digit.
    ///
    /// None if the document is no JSON, is nested too deep, or has nothing of that kind there.
    #[must_use]
    pub fn scalar(&self, document: &[u8]) -> Option<String> {
        let mut value: &RawValue = serde_json::from_slice(document).ok()?;
        for token in self.0.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            value = child(value, &token)?;
        }
        let json = value.get();
        match json.as_bytes().first()? {
            b'"' => serde_json::from_str(json).ok(),
            b'-' | b'0'..=b'9' => Some(json.to_owned()),
            _ => None,
        }
    }
}

fn child<'a>(value: &'a RawValue, token: &str) -> Option<&'a RawValue> {
    let json = value.get();
    if json.starts_with('{') {
        let mut members: BTreeMap<String, &'a RawValue> = serde_json::from_str(json).ok()?;
        return members.remove(token);
    }
    let position: usize = token.parse().ok()?;
    let elements: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    elements.get(position).copied()
}

impl TryFrom<String> for JsonPointer {
    type Error = JsonPointerError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<JsonPointer> for String {
    fn from(pointer: JsonPointer) -> Self {
        pointer.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_finds_texts_and_numbers_and_nothing_else() {
        let document = br#"{"id":"evt_1","n":123456789012345678901234567890,"a":[{"b/c":"x"}],
            "d":{"e~f":-1.50},"caf\u00e9":"y\n","o":{},"z":null}"#;
        let at = |pointer: &str| JsonPointer::parse(pointer).unwrap().scalar(document);
        for (pointer, expected) in [
            ("/id", Some("evt_1")),
            ("/n", Some("123456789012345678901234567890")),
            ("/a/0/b~1c", Some("x")),
            ("/d/e~0f", Some("-1.50")),
            ("/café", Some("y\n")),
            ("/o", None),
            ("/z", None),
            ("/a", None),
            ("/a/1", None),
            ("/a/-1", None),
            ("/id/x", None),
            ("/missing", None),
        ] {
            assert_eq!(at(pointer).as_deref(), expected, "{pointer}");
        }
    }

    #[test]
    fn what_is_no_json_or_nested_without_end_has_nothing_anywhere() {
        let pointer = JsonPointer::parse("/id").unwrap();
        let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
        let inside = [b"{\"id\":".repeat(100_000), b"1".to_vec(), b"}".repeat(100_000)].concat();
        for document in [b"".as_slice(), b"id=1", b"{\"id\":", b"\xff", &deep, &inside] {
            assert_eq!(pointer.scalar(document), None);
        }
    }

    #[test]
    fn a_text_that_is_no_pointer_is_refused() {
        for bad in ["", "id", "/a~2", "/a~"] {
            assert!(JsonPointer::parse(bad).is_err(), "{bad}");
        }
        assert!(JsonPointer::parse(&format!("/{}", "a".repeat(POINTER_BYTES_MAX))).is_err());
    }
}
