//! What the sender calls an event: copies of one event have one id.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{HeaderName, InboundRequest, JsonPointer};

/// The most bytes of an id that is kept as it is.
pub const EVENT_ID_BYTES_MAX: usize = 255;

/// How an id begins that was made here; the rest is a SHA-256 in hexadecimal.
const DIGEST: &str = "sha256:";

/// Where a source's requests carry the id of their event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventIdLocation {
    /// In a header.
    Header(HeaderName),
    /// In the body, which is JSON.
    Pointer(JsonPointer),
    /// Nowhere: the body itself is the id, so that equal bodies are copies of one event.
    Digest,
}

impl EventIdLocation {
    pub(super) fn header(name: &str) -> Self {
        HeaderName::parse(name).map_or(Self::Digest, Self::Header)
    }

    pub(super) fn pointer(text: &str) -> Self {
        JsonPointer::parse(text).map_or(Self::Digest, Self::Pointer)
    }

    /// What stands there.
    pub(super) fn read(&self, request: &InboundRequest<'_>) -> Option<String> {
        match self {
            Self::Header(name) => {
                request.optional_header(name.as_str()).ok().flatten().map(str::to_owned)
            }
            Self::Pointer(pointer) => pointer.scalar(request.body),
            Self::Digest => None,
        }
    }
}

/// The id of an event, unique in its source: 1 to [`EVENT_ID_BYTES_MAX`] bytes, compared byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventId(String);

impl EventId {
    /// The id of the event that a request brings.
    ///
    /// A request without one has the digest of its body as its id: the same body twice is one event.
    /// One that is too long, or that a database could not hold, is replaced by its digest.
    #[must_use]
    pub fn of(location: &EventIdLocation, request: &InboundRequest<'_>) -> Self {
        match location.read(request) {
            Some(text) if Self::is_kept(&text) => Self(text),
            Some(text) if !text.is_empty() => Self(digest(text.as_bytes())),
            _ => Self(digest(request.body)),
        }
    }

    /// Takes an id as it is kept; none if it is no such text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::is_kept(text).then(|| Self(text.to_owned()))
    }

    fn is_kept(text: &str) -> bool {
        (1..=EVENT_ID_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("{DIGEST}{}", hex::encode(Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(location: &EventIdLocation, headers: &[(&str, &[u8])], body: &[u8]) -> String {
        EventId::of(location, &InboundRequest { target: "/", headers, body }).to_string()
    }

    #[test]
    fn an_id_is_taken_from_a_header_or_the_body_as_it_stands() {
        let header = EventIdLocation::header("X-GitHub-Delivery");
        assert_eq!(of(&header, &[("x-github-delivery", b"Ab-1")], b"{}"), "Ab-1");
        let pointer = EventIdLocation::pointer("/id");
        assert_eq!(of(&pointer, &[], br#"{"id":"evt_1"}"#), "evt_1");
        assert_eq!(of(&pointer, &[], br#"{"id":9007199254740993}"#), "9007199254740993");
    }

    #[test]
    fn without_an_id_equal_bodies_are_one_event_and_others_are_not() {
        for location in [
            EventIdLocation::header("x-id"),
            EventIdLocation::pointer("/id"),
            EventIdLocation::Digest,
        ] {
            let (a, again, b) =
                (of(&location, &[], b"a"), of(&location, &[], b"a"), of(&location, &[], b"b"));
            assert_eq!(a, again);
            assert_ne!(a, b);
            assert_eq!(
                a,
                "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
            );
        }
    }

    #[test]
    fn ids_that_cannot_be_kept_are_replaced_by_their_own_digests() {
        let header = EventIdLocation::header("x-id");
        let long = [b'x'; 1_024];
        let longer = [b'x'; 1_025];
        let (a, b) = (of(&header, &[("x-id", &long)], b"1"), of(&header, &[("x-id", &long)], b"2"));
        assert_eq!(a, b, "the id decides, not the body");
        assert_ne!(a, of(&header, &[("x-id", &longer)], b"1"));
        let pointer = EventIdLocation::pointer("/id");
        assert!(of(&pointer, &[], b"{\"id\":\"a\\u0000b\"}").starts_with("sha256:"));
        assert_eq!(
            of(&pointer, &[], b"{\"id\":\"\"}"),
            of(&EventIdLocation::Digest, &[], b"{\"id\":\"\"}")
        );
        assert_eq!(EventId::parse(&a).unwrap().as_str(), a);
        assert_eq!(EventId::parse(""), None);
    }

    #[test]
    fn ids_that_differ_in_letter_case_are_two() {
        let header = EventIdLocation::header("x-id");
        assert_ne!(of(&header, &[("x-id", b"ab")], b""), of(&header, &[("x-id", b"AB")], b""));
    }
}
