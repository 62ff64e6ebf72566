//! Secrets of endpoints: sealed, rotated, and sealed again under another key.

use std::fmt;

use domain::endpoint::SigningSchemes;
use domain::id::{EndpointKey, SourceKey};
use domain::signing::{
    Ed25519SecretKey, EndpointSecret, Overlap, RotationRefused, SEED_BYTES, Scheme, SigningSecret,
};
use time::OffsetDateTime;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::StoreError;
use crate::codes;
use crate::endpoint::secret_row;
use crate::sealing::{SealError, Sealed, Sealer};

/// Length of a shared secret that is made here (Standard Webhooks, "Signature scheme": 24 to 64 bytes).
const SECRET_BYTES: usize = 32;

/// Makes a shared secret from the operating system's randomness.
pub fn generate_secret() -> Result<SigningSecret, SealError> {
    let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
    getrandom::fill(bytes.as_mut_slice()).map_err(|_| SealError::NoRandomness)?;
    SigningSecret::from_slice(bytes.as_slice()).map_err(|_| SealError::NoRandomness)
}

/// Makes an Ed25519 key from the operating system's randomness.
pub fn generate_ed25519() -> Result<Ed25519SecretKey, SealError> {
    let mut seed = Zeroizing::new([0; SEED_BYTES]);
    getrandom::fill(seed.as_mut_slice()).map_err(|_| SealError::NoRandomness)?;
    Ok(Ed25519SecretKey::from_seed(&seed))
}

/// New secrets for an endpoint. Of those that were minted here, only the schemes that the endpoint
/// signs by are stored.
#[derive(Debug, Clone)]
pub struct NewRotation {
    /// Whose secrets.
    pub endpoint: EndpointKey,
    /// What it signs with by HMAC-SHA256 from now on.
    pub secret: SigningSecret,
    /// What it signs with by Ed25519 from now on.
    pub ed25519: Ed25519SecretKey,
    /// Which of both the caller supplied: the endpoint must sign by that scheme.
    pub given: Option<Scheme>,
    /// For how long the old secrets go on.
    pub overlap: Overlap,
}

/// What became of a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// The new secrets are stored, and sign from now on.
    Rotated(Rotated),
    /// Nothing was stored, and why.
    Refused(RotationRefused),
    /// There is no such endpoint.
    Missing,
}

/// A rotation as it was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotated {
    /// The schemes whose secrets were stored.
    pub schemes: SigningSchemes,
    /// The version of the configuration that the rotation made.
    pub version: i64,
    /// When the last of the old secrets ends; none if no old one was live.
    pub retires_at: Option<OffsetDateTime>,
}

/// What a batch of secrets became that other keys had sealed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resealing {
    /// The last row of the batch: the next batch begins after it. None when there was no row.
    pub last: Option<Uuid>,
    /// How many are sealed with the current key now.
    pub resealed: u32,
    /// How many somebody else replaced or deleted meanwhile.
    pub overtaken: u32,
    /// Those that no configured key opens. They are as they were.
    pub unopened: Vec<Unopened>,
}

impl Resealing {
    /// Adds what another batch came to.
    pub fn add(&mut self, batch: Self) {
        self.last = batch.last;
        self.resealed = self.resealed.saturating_add(batch.resealed);
        self.overtaken = self.overtaken.saturating_add(batch.overtaken);
        self.unopened.extend(batch.unopened);
    }
}

/// Who has sealed secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// An endpoint.
    Endpoint(EndpointKey),
    /// A source of webhooks.
    Source(SourceKey),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint(key) => write!(f, "endpoint {key}"),
            Self::Source(key) => write!(f, "source {key}"),
        }
    }
}

/// What cannot be sealed again, since it cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unopened {
    /// Whose it is.
    pub owner: Owner,
    /// The secret's id; none if it is the endpoint's headers.
    pub secret: Option<Uuid>,
    /// Why.
    pub why: String,
}

/// A secret ready to be stored.
#[derive(Debug, Clone)]
pub(crate) struct NewSecret {
    pub(crate) id: Uuid,
    pub(crate) kind: i16,
    pub(crate) sealed: Sealed,
}

/// Seals one secret of each scheme for an endpoint, each under an id of its own.
pub(crate) fn seal_new(
    sealer: &Sealer,
    endpoint: EndpointKey,
    secret: &SigningSecret,
    ed25519: &Ed25519SecretKey,
) -> Result<[NewSecret; 2], StoreError> {
    let seal = |scheme, plaintext: &[u8]| {
        let id = crate::new_id::uuid_now();
        let sealed = sealer.seal(plaintext, &secret_row(endpoint, id)).map_err(|source| {
            StoreError::Sealed { secret: id.to_string(), endpoint: endpoint.to_string(), source }
        })?;
        Ok(NewSecret { id, kind: codes::of_scheme(scheme), sealed })
    };
    Ok([
        seal(Scheme::V1, secret.expose_bytes())?,
        seal(Scheme::V1a, ed25519.expose_seed().as_slice())?,
    ])
}

/// A secret as it is stored.
#[derive(Debug)]
pub(crate) struct StoredSecret {
    pub(crate) id: Uuid,
    pub(crate) kind: i16,
    pub(crate) sealed: Sealed,
}

impl StoredSecret {
    /// The secret, or why it cannot be used.
    pub(crate) fn open(
        &self,
        sealer: &Sealer,
        endpoint: EndpointKey,
    ) -> Result<EndpointSecret, String> {
        let id = self.id;
        let scheme = codes::scheme(self.kind)
            .ok_or_else(|| format!("secret {id} is of the unknown kind {}", self.kind))?;
        let bytes = sealer
            .open(&self.sealed, &secret_row(endpoint, id))
            .map_err(|error| format!("secret {id} cannot be unsealed: {error}"))?;
        EndpointSecret::from_slice(scheme, &bytes)
            .map_err(|error| format!("secret {id} cannot be used: {error}"))
    }

    /// The same secret under the current key, or why it cannot be opened.
    pub(crate) fn reseal(
        &self,
        sealer: &Sealer,
        endpoint: EndpointKey,
    ) -> Result<Sealed, Unopened> {
        let row = secret_row(endpoint, self.id);
        sealer.reseal(&self.sealed, &row).map_err(|error| Unopened {
            owner: Owner::Endpoint(endpoint),
            secret: Some(self.id),
            why: error.to_string(),
        })
    }
}
