//! `v1a` signatures: Ed25519 (RFC 8032), whose public key is all that a receiver needs.
//!
//! Standard Webhooks 1.0.0 prefixes the secret key with `whsk_` and the public key with `whpk_`, and
//! says nothing of how many bytes a secret key has. Both forms in use are read: the 32 bytes of the
//! seed, and the 64 bytes of seed and public key. The latter is written.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use secrecy::zeroize::Zeroizing;

use super::VerifyError;
use super::standard_webhooks::{check_age, entries_of};

/// Length of the seed that a key is made from, in bytes.
pub const SEED_BYTES: usize = 32;

/// What the text form of a secret key starts with (Standard Webhooks, "Signature scheme").
const SECRET_PREFIX: &str = "whsk_";

/// What the text form of a public key starts with (Standard Webhooks, "Signature scheme").
const PUBLIC_PREFIX: &str = "whpk_";

/// What a `v1a` entry starts with.
const V1A: &str = "v1a,";

/// An Ed25519 key that signs, wiped from memory when dropped.
///
/// `Debug` shows no byte of it. There is no `Display`, no `Serialize` and no `==`: the bytes leave
/// only through [`reveal`](Self::reveal) and [`expose_seed`](Self::expose_seed).
#[derive(Clone)]
pub struct Ed25519SecretKey(Box<SigningKey>);

/// The half of a key that verifies, and that anybody may know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ed25519PublicKey(VerifyingKey);

/// Why a text or a byte string is not a key. It never holds any part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ed25519Error {
    /// The text of a secret key does not start with `whsk_`.
    #[error("an Ed25519 secret key starts with `whsk_`, followed by standard base64")]
    MissingSecretPrefix,
    /// The text of a public key does not start with `whpk_`.
    #[error("an Ed25519 public key starts with `whpk_`, followed by standard base64")]
    MissingPublicPrefix,
    /// What follows the prefix is not standard base64 with padding (RFC 4648 section 4).
    #[error("an Ed25519 key is its prefix followed by standard base64 with padding")]
    NotBase64,
    /// It has another number of bytes.
    #[error("an Ed25519 secret key has 32 or 64 bytes and a public key 32, this one {bytes}")]
    WrongLength {
        /// The length of what was given, in raw bytes.
        bytes: usize,
    },
    /// The second half of a secret key of 64 bytes is not the public key of the first.
    #[error("the two halves of the Ed25519 secret key do not belong together")]
    HalvesDiffer,
    /// The bytes are no point of the curve, or one under which anything verifies.
    #[error("the Ed25519 public key cannot be used")]
    UnusablePoint,
}

impl Ed25519SecretKey {
    /// The key of 32 random bytes. Wiping the original is left to its owner.
    #[must_use]
    pub fn from_seed(seed: &[u8; SEED_BYTES]) -> Self {
        // Boxed, so that moving it leaves no copies behind.
        Self(Box::new(SigningKey::from_bytes(seed)))
    }

    /// Takes the 32 bytes of the seed, or the 64 of seed and public key.
    ///
    /// # Errors
    /// [`Ed25519Error`], which names the rule that was broken.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, Ed25519Error> {
        let wrong = || Ed25519Error::WrongLength { bytes: bytes.len() };
        let (seed, public) = bytes.split_first_chunk::<SEED_BYTES>().ok_or_else(wrong)?;
        if !matches!(public.len(), 0 | SEED_BYTES) {
            return Err(wrong());
        }
        let key = Self::from_seed(seed);
        if public.is_empty() || public == key.0.verifying_key().as_bytes() {
            Ok(key)
        } else {
            Err(Ed25519Error::HalvesDiffer)
        }
    }

    /// Reads the text form: `whsk_` and standard base64 with padding of 32 or 64 bytes.
    ///
    /// # Errors
    /// [`Ed25519Error`], which names the rule that was broken.
    pub fn parse(text: &str) -> Result<Self, Ed25519Error> {
        let encoded = text.strip_prefix(SECRET_PREFIX).ok_or(Ed25519Error::MissingSecretPrefix)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| Ed25519Error::NotBase64)?;
        Self::from_slice(&Zeroizing::new(bytes))
    }

    /// The text form of seed and public key. [`parse`](Self::parse) reads it back.
    #[must_use]
    pub fn reveal(&self) -> String {
        let bytes = Zeroizing::new(self.0.to_keypair_bytes());
        format!("{SECRET_PREFIX}{}", STANDARD.encode(bytes.as_slice()))
    }

    /// The 32 bytes that it is made from, to be sealed.
    #[must_use]
    pub fn expose_seed(&self) -> &[u8; SEED_BYTES] {
        self.0.as_bytes()
    }

    /// The half that verifies.
    #[must_use]
    pub fn public_key(&self) -> Ed25519PublicKey {
        Ed25519PublicKey(self.0.verifying_key())
    }
}

impl fmt::Debug for Ed25519SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ed25519SecretKey([REDACTED])")
    }
}

impl Ed25519PublicKey {
    /// Reads the text form: `whpk_` and standard base64 with padding of 32 bytes.
    ///
    /// # Errors
    /// [`Ed25519Error`], which names the rule that was broken.
    pub fn parse(text: &str) -> Result<Self, Ed25519Error> {
        let encoded = text.strip_prefix(PUBLIC_PREFIX).ok_or(Ed25519Error::MissingPublicPrefix)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| Ed25519Error::NotBase64)?;
        let bytes: [u8; SEED_BYTES] = bytes
            .try_into()
            .map_err(|bytes: Vec<u8>| Ed25519Error::WrongLength { bytes: bytes.len() })?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| Ed25519Error::UnusablePoint)?;
        if key.is_weak() { Err(Ed25519Error::UnusablePoint) } else { Ok(Self(key)) }
    }
}

impl fmt::Display for Ed25519PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC_PREFIX}{}", STANDARD.encode(self.0.as_bytes()))
    }
}

impl fmt::Debug for Ed25519PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ed25519PublicKey({self})")
    }
}

/// Signs one payload: `v1a,` and standard base64 of the Ed25519 signature.
///
/// What is signed, and what its parts must be, is as for [`sign_v1`](super::sign_v1).
#[must_use]
pub fn sign_v1a(
    key: &Ed25519SecretKey,
    webhook_id: &str,
    timestamp_seconds: i64,
    payload: &[u8],
) -> String {
    let signed = content(webhook_id, &timestamp_seconds.to_string(), payload);
    format!("{V1A}{}", STANDARD.encode(key.0.sign(&signed).to_bytes()))
}

/// Verifies what was received with public keys, by the rules of [`verify`](super::verify): one
/// `v1a` entry made with the secret half of one of `keys` is enough.
///
/// # Errors
/// [`VerifyError`]. The timestamp is judged before the signature.
pub fn verify_v1a(
    keys: &[Ed25519PublicKey],
    webhook_id: &str,
    timestamp_header: &str,
    signature_header: &str,
    payload: &[u8],
    now_unix_seconds: i64,
    tolerance_seconds: u64,
) -> Result<(), VerifyError> {
    check_age(timestamp_header, now_unix_seconds, tolerance_seconds)?;
    let entries = entries_of(V1A, signature_header)?;
    let signed = content(webhook_id, timestamp_header, payload);
    let signatures = entries.iter().filter_map(|entry| Signature::from_slice(entry).ok());
    let matches = signatures
        .into_iter()
        .any(|signature| keys.iter().any(|key| key.0.verify_strict(&signed, &signature).is_ok()));
    if matches { Ok(()) } else { Err(VerifyError::Mismatch) }
}

/// One piece, since Ed25519 reads it twice.
fn content(webhook_id: &str, timestamp: &str, payload: &[u8]) -> Vec<u8> {
    [webhook_id.as_bytes(), b".", timestamp.as_bytes(), b".", payload].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "msg_test0001";
    const AT: i64 = 1_700_000_000;
    const SECRET: &str = "whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8DoQe/884Qvh1w3RjnS8CZZ+TWMJulDV8d3IZkElUxuA==";
    const PUBLIC: &str = "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=";

    fn first() -> Ed25519SecretKey {
        Ed25519SecretKey::parse(SECRET).unwrap()
    }

    fn verify_at_signing(header: &str, payload: &[u8]) -> Result<(), VerifyError> {
        verify_v1a(&[first().public_key()], ID, "1700000000", header, payload, AT, 300)
    }

    /// Made with another implementation (OpenSSL) from the same seed.
    #[test]
    fn known_answers() {
        let table: [(&[u8], &str); 3] = [
            (
                br#"{"b":1,"a":2}"#,
                "v1a,k9aCOTrRpYjgH9Rvz+6WCIsjncpIh2NsVmsdMdKGY82sfF5I8qYXUhQwmeJbnRFCRBoPEVALEB6C35nOa7hbDg==",
            ),
            (
                b"",
                "v1a,43ole5GCXe+FsCvGzJeaqyplhAK8W+OVKC3XbPbTjoZzGIDpEX42hmo+PiyXTx0Nv5cHQeGWXEO6FdQA8arCBA==",
            ),
            (
                "{\"t\":\"ñ 😊 \u{2028}\"}".as_bytes(),
                "v1a,Yx0J+CQY8N/PKIfrHtTEW3feM7n6OFbIYoH4fi9KHxxWxvSvCgbk3d9np+m/bhDkMKkBtS0/XETsX3LC6sEaCw==",
            ),
        ];
        for (payload, signature) in table {
            assert_eq!(sign_v1a(&first(), ID, AT, payload), signature);
            assert_eq!(verify_at_signing(signature, payload), Ok(()));
        }
        assert_eq!(first().public_key().to_string(), PUBLIC);
    }

    #[test]
    fn a_secret_key_is_read_from_its_seed_alone_and_from_seed_and_public_key() {
        let seed = "whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        for text in [SECRET, seed] {
            assert_eq!(Ed25519SecretKey::parse(text).unwrap().reveal(), SECRET);
        }
        assert_eq!(first().expose_seed().as_slice(), (0..32).collect::<Vec<u8>>());
    }

    #[test]
    fn what_is_no_key_is_refused_by_its_rule() {
        let wrong = |bytes| Ed25519Error::WrongLength { bytes };
        let halves = SECRET.replace("whsk_AAEC", "whsk_BAEC");
        for (text, error) in [
            (&SECRET[5..], Ed25519Error::MissingSecretPrefix),
            ("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", Ed25519Error::MissingSecretPrefix),
            (PUBLIC, Ed25519Error::MissingSecretPrefix),
            (&SECRET[..SECRET.len() - 1], Ed25519Error::NotBase64),
            ("whsk_", wrong(0)),
            ("whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", wrong(24)),
            (&halves, Ed25519Error::HalvesDiffer),
        ] {
            assert_eq!(Ed25519SecretKey::parse(text).unwrap_err(), error, "{text}");
        }
        let neutral =
            format!("{PUBLIC_PREFIX}{}", STANDARD.encode([[1; 1].as_slice(), &[0; 31]].concat()));
        for (text, error) in [
            (SECRET, Ed25519Error::MissingPublicPrefix),
            ("whpk_!", Ed25519Error::NotBase64),
            ("whpk_AAEC", wrong(3)),
            (&neutral, Ed25519Error::UnusablePoint),
        ] {
            assert_eq!(Ed25519PublicKey::parse(text).unwrap_err(), error, "{text}");
        }
        assert_eq!(Ed25519PublicKey::parse(PUBLIC), Ok(first().public_key()));
    }

    #[test]
    fn debug_shows_nothing_of_the_secret_key() {
        let shown = format!("{:?} {:?}", first(), Ed25519SecretKey::parse("whsk_AAEC"));
        assert!(shown.contains("REDACTED"), "{shown}");
        assert!(!shown.contains("AAEC") && !shown.contains("1, 2"), "{shown}");
    }

    #[test]
    fn entries_of_another_scheme_and_broken_ones_do_not_verify() {
        let good = sign_v1a(&first(), ID, AT, b"x");
        assert_eq!(verify_at_signing(&format!("v1,AAAA v2,x {good}"), b"x"), Ok(()));
        for header in ["", "v1,AAAA", &good.replace("v1a,", "v1,"), &good.replace("v1a,", "v1b,")] {
            let refused = verify_at_signing(header, b"x");
            assert_eq!(refused, Err(VerifyError::NoSupportedSignature), "{header}");
        }
        for header in ["v1a,", "v1a,AAAA", &good[..good.len() - 4]] {
            assert_eq!(verify_at_signing(header, b"x"), Err(VerifyError::Mismatch), "{header}");
        }
        let too_many = "v1a,AAAA ".repeat(super::super::SIGNATURES_MAX) + &good;
        assert_eq!(verify_at_signing(&too_many, b"x"), Err(VerifyError::TooManySignatures));
        let stranger = Ed25519SecretKey::from_seed(&[9; 32]);
        let theirs = sign_v1a(&stranger, ID, AT, b"x");
        assert_eq!(verify_at_signing(&theirs, b"x"), Err(VerifyError::Mismatch));
        assert_eq!(verify_at_signing(&format!("{theirs} {good}"), b"x"), Ok(()));
    }

    #[test]
    fn a_timestamp_outside_of_the_tolerance_is_refused() {
        let header = sign_v1a(&first(), ID, AT, b"x");
        let at =
            |now| verify_v1a(&[first().public_key()], ID, "1700000000", &header, b"x", now, 300);
        assert_eq!((at(AT + 300), at(AT - 300)), (Ok(()), Ok(())));
        assert_eq!(at(AT + 301), Err(VerifyError::TooOld { by_seconds: 1 }));
        assert_eq!(at(AT - 301), Err(VerifyError::TooNew { by_seconds: 1 }));
    }

    proptest! {
        #[test]
        fn what_is_signed_verifies_and_what_is_changed_does_not(
            seed in any::<[u8; 32]>(),
            id in "[A-Za-z0-9_-]{1,40}",
            at in 0..=4_000_000_000_i64,
            payload in proptest::collection::vec(any::<u8>(), 0..300),
            flipped in any::<proptest::sample::Index>(),
        ) {
            let key = Ed25519SecretKey::from_seed(&seed);
            let header = sign_v1a(&key, &id, at, &payload);
            let check = |id: &str, at: i64, payload: &[u8]| {
                verify_v1a(&[key.public_key()], id, &at.to_string(), &header, payload, at, 0)
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
        fn revealing_and_parsing_are_inverse(seed in any::<[u8; 32]>()) {
            let key = Ed25519SecretKey::from_seed(&seed);
            let again = Ed25519SecretKey::parse(&key.reveal()).unwrap();
            prop_assert_eq!(again.expose_seed(), &seed);
            let public = key.public_key();
            prop_assert_eq!(Ed25519PublicKey::parse(&public.to_string()), Ok(public));
        }
    }
}
