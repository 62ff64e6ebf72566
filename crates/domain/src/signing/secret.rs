//! The symmetric secret of an endpoint or a source.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use secrecy::{ExposeSecret, SecretSlice, zeroize::Zeroizing};

/// The fewest raw bytes of a secret: 24 (Standard Webhooks, "Signature scheme": 192 bits).
pub const SECRET_BYTES_MIN: usize = 24;

/// The most raw bytes of a secret: 64 (Standard Webhooks, "Signature scheme": 512 bits).
///
/// It is also the block size of SHA-256, so no secret is ever hashed down before use.
pub const SECRET_BYTES_MAX: usize = 64;

/// What the text form of a symmetric secret starts with (Standard Webhooks, "Signature scheme").
const PREFIX: &str = "whsec_";

/// A symmetric signing secret: 24 to 64 raw bytes, wiped from memory when dropped.
///
/// `Debug` shows no byte of it. There is no `Display`, no `Serialize` and no `==`: the bytes leave
/// only through [`reveal`](Self::reveal) and [`expose_bytes`](Self::expose_bytes).
#[derive(Clone, Debug)]
pub struct SigningSecret(SecretSlice<u8>);

/// Why a text or a byte string is not a signing secret. It never holds any part of the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The text does not start with `whsec_`.
    #[error("a signing secret starts with `whsec_`, followed by standard base64")]
    MissingPrefix,
    /// What follows `whsec_` is not standard base64 with padding (RFC 4648 section 4).
    #[error("a signing secret is `whsec_` followed by standard base64 with padding")]
    NotBase64,
    /// The raw secret is too short or too long.
    #[error(
        "a signing secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes, this one {bytes}"
    )]
    WrongLength {
        /// The length of what was given, in raw bytes.
        bytes: usize,
    },
}

impl SigningSecret {
    /// Reads the text form: `whsec_` and standard base64 with padding of 24 to 64 bytes.
    ///
    /// The form without the prefix is refused. Reference receivers decode it as base64, others use
    /// its text as the key, and a sender that guesses wrong produces signatures that never verify.
    ///
    /// # Errors
    /// [`SecretError`], which names the rule that was broken.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretError::MissingPrefix)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretError::NotBase64)?;
        Self::from_bytes(bytes)
    }

    /// Takes 24 to 64 raw bytes. The given vector is wiped, also when it is refused.
    ///
    /// # Errors
    /// [`SecretError::WrongLength`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, SecretError> {
        // Shrinking a vector in place may move it and leave the old copy behind unwiped.
        Self::from_slice(&Zeroizing::new(bytes))
    }

    /// Copies 24 to 64 raw bytes. Wiping the original is left to its owner.
    ///
    /// # Errors
    /// [`SecretError::WrongLength`].
    pub fn from_slice(bytes: &[u8]) -> Result<Self, SecretError> {
        if (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes.len()) {
            Ok(Self(SecretSlice::from(Box::<[u8]>::from(bytes))))
        } else {
            Err(SecretError::WrongLength { bytes: bytes.len() })
        }
    }

    /// The text form, to be shown to its owner once. [`parse`](Self::parse) reads it back.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(self.expose_bytes()))
    }

    /// The 24 to 64 raw bytes, to be signed with or sealed.
    #[must_use]
    pub fn expose_bytes(&self) -> &[u8] {
        self.0.expose_secret()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

    #[test]
    fn a_secret_is_read_and_revealed() {
        let secret = SigningSecret::parse(TEXT).unwrap();
        assert_eq!(secret.expose_bytes(), (0..24).collect::<Vec<u8>>());
        assert_eq!(secret.reveal(), TEXT);
        assert_eq!(secret.clone().reveal(), TEXT);
    }

    /// Case C004.
    #[test]
    fn an_unprefixed_secret_is_refused_with_the_form_that_is_wanted() {
        let refused = SigningSecret::parse("AAECAwQFBgcICQoLDA0ODxAREhMUFRYX").unwrap_err();
        assert_eq!(refused, SecretError::MissingPrefix);
        assert!(refused.to_string().contains("whsec_"));
    }

    #[test]
    fn what_is_not_standard_padded_base64_is_refused() {
        for text in [
            "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRY",
            "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX\n",
            "whsec_ AAECAwQFBgcICQoLDA0ODxAREhMUFRYX",
            "whsec_-_ECAwQFBgcICQoLDA0ODxAREhMUFRYX",
            "whsec_whsec_AAECAwQFBgcICQoLDA0ODxAREhMU",
        ] {
            assert_eq!(SigningSecret::parse(text).unwrap_err(), SecretError::NotBase64, "{text:?}");
        }
    }

    #[test]
    fn the_limits_are_24_and_64_bytes() {
        for bytes in [24, 64] {
            assert!(SigningSecret::from_bytes(vec![7; bytes]).is_ok());
        }
        for bytes in [0, 23, 65, 4096] {
            let refused = SigningSecret::from_bytes(vec![7; bytes]).unwrap_err();
            assert_eq!(refused, SecretError::WrongLength { bytes });
            assert!(refused.to_string().contains("24 to 64 bytes"));
        }
        assert_eq!(
            SigningSecret::parse("whsec_").unwrap_err(),
            SecretError::WrongLength { bytes: 0 }
        );
    }

    #[test]
    fn debug_shows_nothing_of_the_secret() {
        let shown = format!("{:?}", SigningSecret::parse(TEXT).unwrap());
        assert!(shown.contains("REDACTED"), "{shown}");
        assert!(!shown.contains("AAEC") && !shown.contains("1, 2"), "{shown}");
    }

    proptest! {
        #[test]
        fn revealing_and_parsing_are_inverse(bytes in proptest::collection::vec(any::<u8>(), 24..=64)) {
            let secret = SigningSecret::from_slice(&bytes).unwrap();
            let read_back = SigningSecret::parse(&secret.reveal()).unwrap();
            prop_assert_eq!(read_back.expose_bytes(), bytes);
        }
    }
}
