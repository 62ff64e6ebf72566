//! The secret of a source: the text that its sender shows its customer, and the key in it.

use secrecy::{ExposeSecret as _, SecretString};

use super::SchemeKind;
use crate::signing::{Ed25519PublicKey, SigningSecret};

/// The most bytes of a secret.
pub const SOURCE_SECRET_BYTES_MAX: usize = 1_024;

/// One secret of a source, wiped from memory when dropped. `Debug` shows no byte of it.
#[derive(Debug, Clone)]
pub struct SourceSecret {
    text: SecretString,
    key: Key,
}

#[derive(Debug, Clone)]
enum Key {
    /// The text itself, as most senders use it.
    Text,
    Signing(Box<SigningSecret>),
    Public(Box<Ed25519PublicKey>),
}

/// Why a text is no secret of a source. It never holds any part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceSecretError {
    /// It is empty or too long.
    #[error("a secret has 1 to {SOURCE_SECRET_BYTES_MAX} bytes, this one {bytes}")]
    Length {
        /// How many it has.
        bytes: usize,
    },
    /// It has control characters, or white space at an end: what pasting adds.
    #[error("a secret has no control characters, and no white space at its ends")]
    Pasted,
    /// The scheme gives its secrets another form.
    #[error("{0}")]
    Form(String),
}

impl SourceSecret {
    /// Takes the text that the sender gave out, or that it was given.
    ///
    /// # Errors
    /// [`SourceSecretError`], which names the rule that was broken.
    pub fn parse(scheme: SchemeKind, text: &str) -> Result<Self, SourceSecretError> {
        let bytes = text.len();
        if !(1..=SOURCE_SECRET_BYTES_MAX).contains(&bytes) {
            return Err(SourceSecretError::Length { bytes });
        }
        if text.chars().any(char::is_control) || text.trim().len() != bytes {
            return Err(SourceSecretError::Pasted);
        }
        let form = |error: &dyn std::fmt::Display| SourceSecretError::Form(error.to_string());
        let key = match scheme {
            SchemeKind::StandardWebhooks | SchemeKind::Svix if text.starts_with("whpk_") => {
                Key::Public(Box::new(Ed25519PublicKey::parse(text).map_err(|e| form(&e))?))
            }
            SchemeKind::StandardWebhooks | SchemeKind::Svix => {
                Key::Signing(Box::new(SigningSecret::parse(text).map_err(|e| form(&e))?))
            }
            SchemeKind::BasicAuth if !text.contains(':') => {
                return Err(form(&"the secret of basic auth is `user:password`"));
            }
            _ => Key::Text,
        };
        Ok(Self { text: SecretString::from(text), key })
    }

    /// The text, to be sealed, or shown once if it was made here.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.text.expose_secret()
    }

    /// The key of an HMAC.
    pub(super) fn expose_bytes(&self) -> &[u8] {
        match &self.key {
            Key::Text | Key::Public(_) => self.text.expose_secret().as_bytes(),
            Key::Signing(secret) => secret.expose_bytes(),
        }
    }

    pub(super) fn signing(&self) -> Option<&SigningSecret> {
        if let Key::Signing(secret) = &self.key { Some(secret) } else { None }
    }

    pub(super) fn public(&self) -> Option<Ed25519PublicKey> {
        if let Key::Public(key) = &self.key { Some(**key) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_has_its_own_form_of_secrets() {
        use SchemeKind::{BasicAuth, Github, StandardWebhooks, Svix};
        let whsec = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
        let whpk = "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=";
        for (scheme, text, is_one) in [
            (Github, "It's a Secret to Everybody", true),
            (Github, "", false),
            (Github, "pasted\n", false),
            (Github, " pasted", false),
            (StandardWebhooks, whsec, true),
            (StandardWebhooks, whpk, true),
            (StandardWebhooks, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", false),
            (Svix, whsec, true),
            (Svix, "whsec_AAEC", false),
            (BasicAuth, "user:password", true),
            (BasicAuth, "user", false),
        ] {
            assert_eq!(SourceSecret::parse(scheme, text).is_ok(), is_one, "{scheme:?} {text:?}");
        }
        assert!(SourceSecret::parse(Github, &"a".repeat(SOURCE_SECRET_BYTES_MAX)).is_ok());
        assert!(SourceSecret::parse(Github, &"a".repeat(SOURCE_SECRET_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn nothing_of_a_secret_is_shown() {
        let secret = SourceSecret::parse(SchemeKind::Github, "hunter2hunter2").unwrap();
        assert!(!format!("{secret:?}").contains("hunter2"));
        let error = SourceSecret::parse(SchemeKind::Github, "hunter2\n").unwrap_err();
        assert!(!format!("{error:?}{error}").contains("hunter2"));
    }
}
