//! The headers of Standard Webhooks 1.0.0, and `v1` signatures: HMAC-SHA256.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _, digest::Key};
use secrecy::zeroize::Zeroize as _;
use sha2::Sha256;

use super::{EndpointSecret, SigningSecret, sign_v1a};

/// The header that names the submission, the same on every attempt.
pub const WEBHOOK_ID: &str = "webhook-id";

/// The header that holds the time of the attempt, in whole seconds since the Unix epoch.
pub const WEBHOOK_TIMESTAMP: &str = "webhook-timestamp";

/// The header that lists the signatures, separated by single spaces.
pub const WEBHOOK_SIGNATURE: &str = "webhook-signature";

/// The most entries that a verified signature header may hold: 20.
///
/// It is twice the number of secrets that may be live at once, for senders that sign under two
/// schemes, and it bounds the work that a stranger's header can cause.
pub const SIGNATURES_MAX: usize = 20;

/// What a `v1` entry starts with.
const V1: &str = "v1,";

/// Why a received signature was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The timestamp header is not a number of seconds in ASCII digits that fits an `i64`.
    #[error("the webhook-timestamp is not a number of seconds since the Unix epoch")]
    MalformedTimestamp,
    /// The timestamp lies further in the past than the tolerance allows.
    #[error("the webhook-timestamp is {by_seconds} s older than the tolerance allows")]
    TooOld {
        /// Seconds beyond the tolerance, at least 1.
        by_seconds: u64,
    },
    /// The timestamp lies further in the future than the tolerance allows.
    #[error("the webhook-timestamp is {by_seconds} s further ahead than the tolerance allows")]
    TooNew {
        /// Seconds beyond the tolerance, at least 1.
        by_seconds: u64,
    },
    /// The signature header holds more than [`SIGNATURES_MAX`] entries.
    #[error("the webhook-signature holds more than {SIGNATURES_MAX} entries")]
    TooManySignatures,
    /// The signature header holds no entry of the scheme.
    #[error("the webhook-signature holds no entry of the scheme")]
    NoSupportedSignature,
    /// No entry of the scheme was made with any of the secrets over this content.
    #[error("no entry of the webhook-signature matches")]
    Mismatch,
}

/// Signs one payload: `v1,` and standard base64 of the HMAC-SHA256.
///
/// `webhook_id` must hold no full stop, or another split of the same content would carry the same
/// signature (Standard Webhooks, "Signature scheme"). `timestamp_seconds` counts from the Unix
/// epoch and is the text of the timestamp header. An empty payload is signed as the empty string.
#[must_use]
pub fn sign_v1(
    secret: &SigningSecret,
    webhook_id: &str,
    timestamp_seconds: i64,
    payload: &[u8],
) -> String {
    let mac = mac_of(secret, webhook_id, &timestamp_seconds.to_string(), payload);
    format!("{V1}{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// The value of the signature header: one entry per secret, in the order given.
///
/// The caller gives every live secret of the endpoint, newest first, so that a receiver verifies
/// with either side of a rotation. No secret yields an empty string.
#[must_use]
pub fn signature_header(
    secrets: &[EndpointSecret],
    webhook_id: &str,
    timestamp_seconds: i64,
    payload: &[u8],
) -> String {
    let entries: Vec<String> = secrets
        .iter()
        .map(|secret| match secret {
            EndpointSecret::V1(secret) => sign_v1(secret, webhook_id, timestamp_seconds, payload),
            EndpointSecret::V1a(key) => sign_v1a(key, webhook_id, timestamp_seconds, payload),
        })
        .collect();
    entries.join(" ")
}

/// Verifies what was received: true content, and a timestamp close to now.
///
/// One `v1` entry made with one of `secrets` is enough; entries of other versions are skipped. The
/// comparison takes constant time (Standard Webhooks, "Verifying signatures"). The timestamp may
/// lie up to `tolerance_seconds` on either side of `now_unix_seconds`, bounds included. It is
/// signed as the text that was received. Without secrets nothing matches.
///
/// # Errors
/// [`VerifyError`]. The timestamp is judged before the signature.
pub fn verify(
    secrets: &[SigningSecret],
    webhook_id: &str,
    timestamp_header: &str,
    signature_header: &str,
    payload: &[u8],
    now_unix_seconds: i64,
    tolerance_seconds: u64,
) -> Result<(), VerifyError> {
    check_age(timestamp_header, now_unix_seconds, tolerance_seconds)?;
    let tags = entries_of(V1, signature_header)?;
    let matches = secrets.iter().any(|secret| {
        let mac = mac_of(secret, webhook_id, timestamp_header, payload);
        tags.iter().any(|tag| mac.clone().verify_slice(tag).is_ok())
    });
    if matches { Ok(()) } else { Err(VerifyError::Mismatch) }
}

pub(super) fn check_age(
    timestamp: &str,
    now: i64,
    tolerance_seconds: u64,
) -> Result<(), VerifyError> {
    if !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(VerifyError::MalformedTimestamp);
    }
    let signed_at: i64 = timestamp.parse().map_err(|_| VerifyError::MalformedTimestamp)?;
    match now.abs_diff(signed_at).saturating_sub(tolerance_seconds) {
        0 => Ok(()),
        by_seconds if signed_at < now => Err(VerifyError::TooOld { by_seconds }),
        by_seconds => Err(VerifyError::TooNew { by_seconds }),
    }
}

/// The decoded entries of a signature header that start with `prefix`. An entry that is no base64
/// matches nothing.
pub(super) fn entries_of(prefix: &str, header: &str) -> Result<Vec<Vec<u8>>, VerifyError> {
    if header.split(' ').nth(SIGNATURES_MAX).is_some() {
        return Err(VerifyError::TooManySignatures);
    }
    let tags: Vec<Vec<u8>> = header
        .split(' ')
        .filter_map(|entry| entry.strip_prefix(prefix))
        .map(|encoded| STANDARD.decode(encoded).unwrap_or_default())
        .collect();
    if tags.is_empty() { Err(VerifyError::NoSupportedSignature) } else { Ok(tags) }
}

fn mac_of(
    secret: &SigningSecret,
    webhook_id: &str,
    timestamp: &str,
    payload: &[u8],
) -> Hmac<Sha256> {
    // A key shorter than a block is padded with zeros (RFC 2104 section 2). Padding it here makes
    // the construction infallible: a secret is never longer than the 64 bytes of a block.
    let mut key = Key::<Hmac<Sha256>>::default();
    for (padded, byte) in key.iter_mut().zip(secret.expose_bytes()) {
        *padded = *byte;
    }
    let mac = Hmac::<Sha256>::new(&key)
        .chain_update(webhook_id)
        .chain_update(".")
        .chain_update(timestamp)
        .chain_update(".")
        .chain_update(payload);
    key.as_mut_slice().zeroize();
    mac
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "msg_test0001";
    const AT: i64 = 1_700_000_000;

    fn first() -> SigningSecret {
        SigningSecret::parse("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX").unwrap()
    }

    fn second() -> SigningSecret {
        SigningSecret::parse("whsec_GBkaGxwdHh8gISIjJCUmJygpKissLS4v").unwrap()
    }

    fn verify_at_signing(header: &str, payload: &[u8]) -> Result<(), VerifyError> {
        verify(&[first()], ID, "1700000000", header, payload, AT, 300)
    }

    #[test]
    fn known_answers() {
        let big_numbers = br#"{"u64":18446744073709551615,"i":123456789012345678901234567890,"f":9007199254740991.0,"g":117.63331139400017}"#;
        let table: [(&str, SigningSecret, &[u8], &str); 5] = [
            (
                "C002",
                first(),
                br#"{"b":1,"a":2}"#,
                "v1,A/Pao2LEw3AYO/9p897YaRYDCU1ZCrU2DDD25PlbbvU=",
            ),
            (
                "C008",
                second(),
                br#"{"b":1,"a":2}"#,
                "v1,vE51ygC2vMybfKzzShBESu7JG7fG9QQXDBXZO+d4+gk=",
            ),
            ("C009", first(), b"", "v1,q++Ye1u/ubg3zSOCw6GLAFGC0ncrIzdGufI+jvEWCG8="),
            ("C013", first(), big_numbers, "v1,NYNaYyfSFSvfCTtYExkbph5U1XdjhJLBjhM0JDz9xuE="),
            (
                "C017",
                first(),
                "{\"t\":\"ñ 😊 \u{2028}\"}".as_bytes(),
                "v1,t1jvcu6LJS3W5ISFsKt59nQtx2TxJ1WJw7DuOjwXsEU=",
            ),
        ];
        for (case, secret, payload, signature) in table {
            assert_eq!(sign_v1(&secret, ID, AT, payload), signature, "{case}");
            assert_eq!(
                verify(&[secret], ID, "1700000000", signature, payload, AT, 0),
                Ok(()),
                "{case}"
            );
        }
    }

    #[test]
    fn a_payload_need_not_be_utf8() {
        let payload = [0x00, 0xE9, 0xFF];
        assert_eq!(verify_at_signing(&sign_v1(&first(), ID, AT, &payload), &payload), Ok(()));
    }

    #[test]
    fn the_header_has_one_entry_per_secret_in_order() {
        let payload = br#"{"b":1,"a":2}"#;
        let header =
            signature_header(&[second(), first()].map(EndpointSecret::V1), ID, AT, payload);
        assert_eq!(
            header,
            "v1,vE51ygC2vMybfKzzShBESu7JG7fG9QQXDBXZO+d4+gk= \
             v1,A/Pao2LEw3AYO/9p897YaRYDCU1ZCrU2DDD25PlbbvU="
        );
        assert_eq!(signature_header(&[], ID, AT, payload), "");
    }

    #[test]
    fn a_receiver_on_either_side_of_a_rotation_verifies() {
        let header = signature_header(&[second(), first()].map(EndpointSecret::V1), ID, AT, b"x");
        for known in [vec![first()], vec![second()], vec![second(), first()]] {
            assert_eq!(verify(&known, ID, "1700000000", &header, b"x", AT, 300), Ok(()));
        }
        let only_old = sign_v1(&first(), ID, AT, b"x");
        let both = [second(), first()];
        assert_eq!(verify(&both, ID, "1700000000", &only_old, b"x", AT, 300), Ok(()));
    }

    /// Case C008.
    #[test]
    fn a_signature_verifies_only_with_its_own_secret() {
        let header = sign_v1(&second(), ID, AT, b"x");
        assert_eq!(verify_at_signing(&header, b"x"), Err(VerifyError::Mismatch));
        assert_eq!(
            verify(&[], ID, "1700000000", &header, b"x", AT, 300),
            Err(VerifyError::Mismatch)
        );
    }

    #[test]
    fn the_tolerance_includes_its_bounds_on_both_sides() {
        let header = sign_v1(&first(), ID, AT, b"x");
        let at = |now| verify(&[first()], ID, "1700000000", &header, b"x", now, 300);
        assert_eq!(at(AT + 300), Ok(()));
        assert_eq!(at(AT - 300), Ok(()));
        assert_eq!(at(AT + 301), Err(VerifyError::TooOld { by_seconds: 1 }));
        assert_eq!(at(AT - 310), Err(VerifyError::TooNew { by_seconds: 10 }));
        assert!(matches!(at(i64::MIN), Err(VerifyError::TooNew { .. })));
        assert!(matches!(at(i64::MAX), Err(VerifyError::TooOld { .. })));
    }

    #[test]
    fn a_timestamp_is_digits_and_nothing_else() {
        let header = sign_v1(&first(), ID, AT, b"x");
        for timestamp in [
            "",
            " 1700000000",
            "+1700000000",
            "-1",
            "1.7e9",
            "1700000000.0",
            "١٧",
            "9223372036854775808",
        ] {
            assert_eq!(
                verify(&[first()], ID, timestamp, &header, b"x", AT, 300),
                Err(VerifyError::MalformedTimestamp),
                "{timestamp:?}"
            );
        }
    }

    #[test]
    fn other_versions_are_skipped_and_alone_are_unsupported() {
        let good = sign_v1(&first(), ID, AT, b"x");
        for header in [
            format!("v1a,AAAA {good}"),
            format!("v2,AAAA v1,%%% v1, {good} v1"),
            format!("  {good} "),
        ] {
            assert_eq!(verify_at_signing(&header, b"x"), Ok(()), "{header}");
        }
        for header in ["", " ", "v1", "v1a,AAAA", "V1,AAAA", &good.replace("v1,", "v1a,")] {
            assert_eq!(
                verify_at_signing(header, b"x"),
                Err(VerifyError::NoSupportedSignature),
                "{header}"
            );
        }
        for header in ["v1,", "v1,AAAA", &good[..good.len() - 4], &format!("v1, {}", &good[3..])] {
            assert_eq!(verify_at_signing(header, b"x"), Err(VerifyError::Mismatch), "{header}");
        }
    }

    #[test]
    fn the_work_that_a_header_causes_is_bounded() {
        let good = sign_v1(&first(), ID, AT, b"x");
        let padded = |bad: usize| format!("{}{good}", "v1,AAAA ".repeat(bad));
        assert_eq!(verify_at_signing(&padded(SIGNATURES_MAX - 1), b"x"), Ok(()));
        assert_eq!(
            verify_at_signing(&padded(SIGNATURES_MAX), b"x"),
            Err(VerifyError::TooManySignatures)
        );
    }

    /// The reference crate checks against the system clock, so it signs and the texts are compared.
    #[test]
    fn the_reference_library_signs_the_same() {
        let reference = standardwebhooks::Webhook::new(&first().reveal()).unwrap();
        for payload in ["", " ", "null", r#"{"b":1,"a":2}"#, r#"{"inner":"{\"x\":\"\\u0000\"}"}"#] {
            assert_eq!(
                reference.sign(ID, AT, payload.as_bytes()).unwrap(),
                sign_v1(&first(), ID, AT, payload.as_bytes())
            );
        }
    }

    fn any_secret() -> impl Strategy<Value = SigningSecret> {
        proptest::collection::vec(any::<u8>(), 24..=64)
            .prop_map(|bytes| SigningSecret::from_bytes(bytes).unwrap())
    }

    proptest! {
        #[test]
        fn what_is_signed_verifies_and_what_is_changed_does_not(
            secrets in proptest::collection::vec(any_secret(), 1..4),
            id in "[A-Za-z0-9_-]{1,40}",
            at in 0..=4_000_000_000_i64,
            payload in proptest::collection::vec(any::<u8>(), 0..300),
            flipped in any::<proptest::sample::Index>(),
        ) {
            let signing: Vec<_> = secrets.iter().cloned().map(EndpointSecret::V1).collect();
            let header = signature_header(&signing, &id, at, &payload);
            let check = |id: &str, at: i64, payload: &[u8]| {
                verify(&secrets, id, &at.to_string(), &header, payload, at, 0)
            };
            prop_assert_eq!(check(&id, at, &payload), Ok(()));
            prop_assert_eq!(check(&format!("{id}0"), at, &payload), Err(VerifyError::Mismatch));
            prop_assert_eq!(check(&id, at + 1, &payload), Err(VerifyError::Mismatch));
            let mut tampered = payload.clone();
            match tampered.len() {
                0 => tampered.push(b' '),
                length => tampered[flipped.index(length)] ^= 1,
            }
            prop_assert_eq!(check(&id, at, &tampered), Err(VerifyError::Mismatch));
        }

        #[test]
        fn the_reference_library_agrees_for_every_secret(
            secret in any_secret(),
            payload in "\\PC{0,60}",
        ) {
            let reference = standardwebhooks::Webhook::from_bytes(secret.expose_bytes().to_vec()).unwrap();
            prop_assert_eq!(
                reference.sign(ID, AT, payload.as_bytes()).unwrap(),
                sign_v1(&secret, ID, AT, payload.as_bytes())
            );
        }
    }
}
