//! API keys: 256 random bits, of which only a digest is stored.

use std::fmt;

use domain::id::ApplicationKey;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::sealing::SealError;

/// What every key starts with, so that a leaked one can be recognised.
pub const API_KEY_PREFIX: &str = "fp_live_";

/// SHA-256 of a key. The key has 256 random bits, so a slow hash would add nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiKeyDigest([u8; 32]);

impl ApiKeyDigest {
    /// The digest of a presented key.
    #[must_use]
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// The 32 bytes as they are stored.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Everything.
    Admin,
    /// Submit, and read what was submitted.
    Publish,
    /// Read.
    Read,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Admin, Self::Publish, Self::Read];

    /// Whether it may do all that `least` may: each role may also do what the next one may.
    #[must_use]
    pub fn covers(self, least: Self) -> bool {
        match self {
            Self::Admin => true,
            Self::Publish => least != Self::Admin,
            Self::Read => least == Self::Read,
        }
    }

    /// The role of a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    /// The name in answers and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Publish => "publish",
            Self::Read => "read",
        }
    }
}

/// A key to be stored, and its text to be shown once.
pub struct NewApiKey {
    /// Its id.
    pub id: Uuid,
    /// A label for people.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The one application it is bound to, if any.
    pub application: Option<ApplicationKey>,
    text: SecretString,
}

impl NewApiKey {
    /// Makes a key from the operating system's randomness.
    pub fn generate(
        name: &str,
        role: Role,
        application: Option<ApplicationKey>,
    ) -> Result<Self, SealError> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).map_err(|_| SealError::NoRandomness)?;
        let hex = crate::hex::encode(&bytes);
        let text = SecretString::from(format!("{API_KEY_PREFIX}{hex}"));
        Ok(Self { id: crate::new_id::uuid_now(), name: name.to_owned(), role, application, text })
    }

    /// What is stored of it.
    #[must_use]
    pub fn digest(&self) -> ApiKeyDigest {
        ApiKeyDigest::of(self.text.expose_secret())
    }

    /// The first characters, by which its owner recognises it: not enough to guess the rest.
    #[must_use]
    pub fn shown_prefix(&self) -> String {
        self.text.expose_secret().chars().take(API_KEY_PREFIX.len() + 4).collect()
    }

    /// The key, to be shown to its owner once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.text.expose_secret()
    }
}

impl fmt::Debug for NewApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewApiKey")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("role", &self.role)
            .field("application", &self.application)
            .finish_non_exhaustive()
    }
}

/// A stored key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id.
    pub id: Uuid,
    /// A label for people.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The one application it is bound to, if any.
    pub application: Option<ApplicationKey>,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// Whether its last use was noted more than an hour ago, or never: time to note this one.
    pub use_due: bool,
}

/// A stored key as its owner sees it, revoked ones included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyView {
    /// Its id.
    pub id: Uuid,
    /// A label for people.
    pub name: String,
    /// The first characters of the key.
    pub shown_prefix: String,
    /// What it may do.
    pub role: Role,
    /// The public id of the one application it is bound to, if any.
    pub application_id: Option<String>,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it was last used, up to an hour too early.
    pub last_used_at: Option<OffsetDateTime>,
    /// When it was revoked. None: it is live.
    pub revoked_at: Option<OffsetDateTime>,
}

/// What became of a key to be revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revocation {
    /// It is revoked: the next request with it is refused.
    Revoked,
    /// It had been revoked before.
    WasRevoked,
    /// It is the last live admin key of all applications. Nobody could make another one over HTTP,
    /// so it stays.
    LastAdmin,
    /// No such key, or none of that application.
    Missing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admin_may_what_a_publisher_may_and_a_publisher_what_a_reader_may() {
        use Role::{Admin, Publish, Read};
        let covered = |role: Role| Role::ALL.map(|least| role.covers(least));
        assert_eq!(Role::ALL, [Admin, Publish, Read]);
        assert_eq!(covered(Admin), [true, true, true]);
        assert_eq!(covered(Publish), [false, true, true]);
        assert_eq!(covered(Read), [false, false, true]);
    }

    #[test]
    fn a_role_is_parsed_from_its_name_and_from_nothing_else() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        for bad in ["", "Admin", "admin ", "root"] {
            assert_eq!(Role::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_key_has_256_bits_and_hides_them_from_debug_output() {
        let key = NewApiKey::generate("ci", Role::Admin, None).unwrap();
        assert_eq!(key.reveal().len(), API_KEY_PREFIX.len() + 64);
        assert_eq!(key.digest(), ApiKeyDigest::of(key.reveal()));
        assert!(!format!("{key:?}").contains(key.reveal()));
        let other = NewApiKey::generate("ci", Role::Admin, None).unwrap();
        assert_ne!(key.reveal(), other.reveal());
    }
}
