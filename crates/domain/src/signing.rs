//! How a delivery proves where it comes from: secrets and the signatures made with them.
//!
//! The scheme is Standard Webhooks 1.0.0, sections "Signature scheme" and "Webhook headers". The
//! signed content is `{webhook-id}.{webhook-timestamp}.{payload}`, taken over the payload's stored
//! bytes. This module never parses or re-serializes a payload, so what is signed is what is sent.
//!
//! Time is an argument: the caller says which timestamp to sign, and what time it is to verify.

mod ed25519;
mod endpoint_secret;
mod rotation;
mod secret;
mod standard_webhooks;

pub use ed25519::{
    Ed25519Error, Ed25519PublicKey, Ed25519SecretKey, SEED_BYTES, sign_v1a, verify_v1a,
};
pub use endpoint_secret::{EndpointSecret, EndpointSecretError, Scheme};
pub use rotation::{
    LIVE_SECRETS_MAX, LiveSecrets, OVERLAP_DEFAULT, OVERLAP_MAX, Overlap, OverlapError,
    RotationRefused, may_rotate,
};
pub use secret::{SECRET_BYTES_MAX, SECRET_BYTES_MIN, SecretError, SigningSecret};
pub use standard_webhooks::{
    SIGNATURES_MAX, VerifyError, WEBHOOK_ID, WEBHOOK_SIGNATURE, WEBHOOK_TIMESTAMP, sign_v1,
    signature_header, verify,
};
