//! What two submissions under one idempotency key are compared by.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Names the encoding below. Another encoding needs another name: fingerprints outlive a release.
const ENCODING: &[u8] = b"fencepost.fingerprint.1";
/// The same for resends, which name a submission instead of bringing content.
const RESEND_ENCODING: &[u8] = b"fencepost.resend.1";
/// The same for inbound events.
const RECEIVED_ENCODING: &[u8] = b"fencepost.received.1";

/// The SHA-256 of everything that makes a submission what it is, 32 bytes.
///
/// Two submissions with one idempotency key are the same if and only if their fingerprints are
/// equal. They are compared byte for byte: JSON that differs in a space or in the order of its keys
/// is other content, since other bytes would be signed and sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Computes the fingerprint of one submission.
    ///
    /// `scope` is the internal id of the endpoint, in which the idempotency key is unique. No event
    /// type and an empty one differ. The payload is taken as it was received.
    #[must_use]
    pub fn of(scope: &Uuid, event_type: Option<&str>, content_type: &str, payload: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(ENCODING);
        hash.update(scope.as_bytes());
        match event_type {
            None => hash.update([0]),
            Some(event_type) => {
                hash.update([1]);
                update_with_length(&mut hash, event_type.as_bytes());
            }
        }
        update_with_length(&mut hash, content_type.as_bytes());
        update_with_length(&mut hash, payload);
        Self(hash.finalize().into())
    }

    /// The fingerprint of a resend: the same only if it resends the same submission.
    #[must_use]
    pub fn of_resend(scope: &Uuid, submission: &Uuid) -> Self {
        let mut hash = Sha256::new();
        hash.update(RESEND_ENCODING);
        hash.update(scope.as_bytes());
        hash.update(submission.as_bytes());
        Self(hash.finalize().into())
    }

    /// The fingerprint of an inbound event: the bytes as they were received.
    #[must_use]
    pub fn of_received(body: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(RECEIVED_ENCODING);
        update_with_length(&mut hash, body);
        Self(hash.finalize().into())
    }

    /// Takes back what [`as_bytes`](Self::as_bytes) gave. `None` unless it is 32 bytes long.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The 32 bytes to be stored.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The length first, as 8 bytes, so that no byte can change its field unnoticed.
fn update_with_length(hash: &mut Sha256, field: &[u8]) {
    hash.update((field.len() as u64).to_be_bytes());
    hash.update(field);
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use proptest::prelude::*;

    use super::*;

    const SCOPE: Uuid = Uuid::from_u128(7);
    const JSON: &str = "application/json";

    fn of(event_type: Option<&str>, content_type: &str, payload: &str) -> Fingerprint {
        Fingerprint::of(&SCOPE, event_type, content_type, payload.as_bytes())
    }

    /// A change of this value makes every stored key a conflict: it needs a new `ENCODING`.
    #[test]
    fn the_encoding_never_changes() {
        let known = of(Some("invoice.paid"), JSON, r#"{"a":1}"#);
        assert_eq!(
            STANDARD.encode(known.as_bytes()),
            "/v9DZylTq8GBfXiJj4acFLcaqzHB510ZbqrvjvSlup0="
        );
    }

    /// Case C050.
    #[test]
    fn each_field_makes_a_difference() {
        let original = of(Some("invoice.paid"), JSON, r#"{"a":1}"#);
        assert_eq!(of(Some("invoice.paid"), JSON, r#"{"a":1}"#), original);
        let other_scope =
            Fingerprint::of(&Uuid::from_u128(8), Some("invoice.paid"), JSON, br#"{"a":1}"#);
        for other in [
            other_scope,
            of(Some("invoice.sent"), JSON, r#"{"a":1}"#),
            of(None, JSON, r#"{"a":1}"#),
            of(Some("invoice.paid"), "text/plain", r#"{"a":1}"#),
            of(Some("invoice.paid"), JSON, r#"{"a": 1}"#),
            of(Some("invoice.paid"), JSON, r#"{"a":2}"#),
            of(Some("invoice.paid"), JSON, ""),
        ] {
            assert_ne!(other, original);
        }
    }

    #[test]
    fn no_event_type_and_an_empty_one_differ() {
        assert_ne!(of(None, JSON, "x"), of(Some(""), JSON, "x"));
    }

    #[test]
    fn a_resend_is_known_by_what_it_resends_and_is_no_other_content() {
        let resent =
            |scope, id| Fingerprint::of_resend(&Uuid::from_u128(scope), &Uuid::from_u128(id));
        assert_eq!(resent(7, 1), resent(7, 1));
        assert_ne!(resent(7, 1), resent(7, 2));
        assert_ne!(resent(7, 1), resent(8, 1));
        assert_ne!(resent(7, 1), of(None, JSON, ""));
    }

    #[test]
    fn it_survives_storage_and_nothing_else_is_taken_for_one() {
        let stored = of(None, JSON, "x");
        assert_eq!(Fingerprint::from_slice(stored.as_bytes()), Some(stored));
        for length in [0, 31, 33] {
            assert_eq!(Fingerprint::from_slice(&vec![0; length]), None);
        }
    }

    proptest! {
        #[test]
        fn a_byte_that_crosses_a_border_makes_a_difference(text in "[a-z]{2,20}", at in 0..200_usize, to in 0..200_usize) {
            let (at, to) = (at % text.len(), to % text.len());
            let typed = |border: usize| of(Some(&text[..border]), &text[border..], "");
            prop_assert_eq!(typed(at) == typed(to), at == to);
            let untyped = |border: usize| of(None, &text[..border], &text[border..]);
            prop_assert_eq!(untyped(at) == untyped(to), at == to);
        }
    }
}
