//! What an endpoint's requests are signed with.

use super::{Ed25519Error, Ed25519SecretKey, SecretError, SigningSecret};
use crate::endpoint::SigningSchemes;

/// One way of signing (Standard Webhooks, "Signature scheme").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// HMAC-SHA256: the receiver holds the same secret.
    V1,
    /// Ed25519: the receiver holds the public key.
    V1a,
}

impl Scheme {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V1, Self::V1a];

    /// Whether deliveries of an endpoint with that setting carry its signatures.
    #[must_use]
    pub fn is_used_by(self, schemes: SigningSchemes) -> bool {
        match self {
            Self::V1 => schemes.has_v1(),
            Self::V1a => schemes.has_v1a(),
        }
    }
}

/// One secret of an endpoint.
#[derive(Clone, Debug)]
pub enum EndpointSecret {
    /// Shared with the receiver.
    V1(SigningSecret),
    /// Kept here: the receiver has its public key.
    V1a(Ed25519SecretKey),
}

/// Why a text or a byte string is no secret of an endpoint. It never holds any part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointSecretError {
    /// It is no secret for HMAC-SHA256.
    #[error(transparent)]
    V1(#[from] SecretError),
    /// It is no key for Ed25519.
    #[error(transparent)]
    V1a(#[from] Ed25519Error),
}

impl EndpointSecret {
    /// Reads the text form: `whsk_…` is a key for Ed25519, anything else must be `whsec_…`.
    ///
    /// # Errors
    /// [`EndpointSecretError`], which names the rule that was broken.
    pub fn parse(text: &str) -> Result<Self, EndpointSecretError> {
        if text.starts_with("whsk_") {
            Ok(Self::V1a(Ed25519SecretKey::parse(text)?))
        } else {
            Ok(Self::V1(SigningSecret::parse(text)?))
        }
    }

    /// Which scheme it signs by.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        match self {
            Self::V1(_) => Scheme::V1,
            Self::V1a(_) => Scheme::V1a,
        }
    }

    /// The secret of a scheme from the bytes that [`expose_bytes`](Self::expose_bytes) gave.
    ///
    /// # Errors
    /// [`EndpointSecretError`], which names the rule that was broken.
    pub fn from_slice(scheme: Scheme, bytes: &[u8]) -> Result<Self, EndpointSecretError> {
        Ok(match scheme {
            Scheme::V1 => Self::V1(SigningSecret::from_slice(bytes)?),
            Scheme::V1a => Self::V1a(Ed25519SecretKey::from_slice(bytes)?),
        })
    }

    /// The raw bytes, to be sealed.
    #[must_use]
    pub fn expose_bytes(&self) -> &[u8] {
        match self {
            Self::V1(secret) => secret.expose_bytes(),
            Self::V1a(key) => key.expose_seed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_secret_lead_back_to_it() {
        let v1 = EndpointSecret::V1(SigningSecret::from_slice(&[1; 32]).unwrap());
        let v1a = EndpointSecret::V1a(Ed25519SecretKey::from_seed(&[2; 32]));
        for (secret, scheme) in [(v1, Scheme::V1), (v1a, Scheme::V1a)] {
            assert_eq!(secret.scheme(), scheme);
            let again = EndpointSecret::from_slice(scheme, secret.expose_bytes()).unwrap();
            assert_eq!(again.expose_bytes(), secret.expose_bytes());
        }
        assert!(EndpointSecret::from_slice(Scheme::V1a, &[0; 31]).is_err());
        assert!(EndpointSecret::from_slice(Scheme::V1, &[0; 23]).is_err());
    }

    #[test]
    fn the_text_of_a_secret_says_which_scheme_it_is_for() {
        let v1 = SigningSecret::from_slice(&[1; 32]).unwrap().reveal();
        let v1a = Ed25519SecretKey::from_seed(&[2; 32]).reveal();
        assert_eq!(EndpointSecret::parse(&v1).unwrap().scheme(), Scheme::V1);
        assert_eq!(EndpointSecret::parse(&v1a).unwrap().scheme(), Scheme::V1a);
        let refused = [&v1[6..], "whsk_AAEC"].map(|text| EndpointSecret::parse(text).unwrap_err());
        assert!(refused[0].to_string().contains("whsec_"));
        assert_eq!(refused[1], EndpointSecretError::V1a(Ed25519Error::WrongLength { bytes: 3 }));
    }
}
