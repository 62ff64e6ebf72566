//! Submissions: what is acceptable, and when two of them are the same.

pub mod content;
pub mod fingerprint;
pub mod idempotency_key;

pub use content::{ContentType, EventType};
pub use fingerprint::Fingerprint;
pub use idempotency_key::IdempotencyKey;
