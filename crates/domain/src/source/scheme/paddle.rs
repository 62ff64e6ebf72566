//! Paddle Billing: `Paddle-Signature: ts=<seconds>;h1=<hex>`, HMAC-SHA256 over `<seconds>:<body>`.
//!
//! <https://developer.paddle.com/webhooks/signature-verification>. While a secret is rotated there is
//! more than one `h1`. Paddle's own libraries tolerate 5 s; ours 5 min, unless the source says less,
//! since a copy is recognised by its id.

use serde::{Deserialize, Serialize};

use super::{Algorithm, Tolerance};
use crate::source::mac::{entries, matches};
use crate::source::{InboundRequest, Refusal, SourceSecret};

const SIGNATURE: &str = "paddle-signature";

/// The settings of a Paddle notification destination.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paddle {
    /// How far its clock may be from ours.
    #[serde(default)]
    pub tolerance: Tolerance,
}

impl Paddle {
    pub(super) fn verify(
        &self,
        secrets: &[SourceSecret],
        request: &InboundRequest<'_>,
        now: i64,
    ) -> Result<(), Refusal> {
        let entries = entries(SIGNATURE, request.header(SIGNATURE)?, ';', "ts", "h1")?;
        self.tolerance.judge(entries.timestamp, now)?;
        let parts = [entries.timestamp.as_bytes(), b":", request.body];
        matches(Algorithm::Sha256, secrets, &parts, &entries.tags)
    }
}
