//! Stripe: `Stripe-Signature: t=<seconds>,v1=<hex>`, HMAC-SHA256 over `<seconds>.<body>`.
//!
//! <https://docs.stripe.com/webhooks#verify-manually>. The secret is used as the text that it is, its
//! `whsec_` included. Entries of other schemes (`v0`) prove nothing.

use serde::{Deserialize, Serialize};

use super::{Algorithm, Tolerance};
use crate::source::mac::{entries, matches};
use crate::source::{InboundRequest, Refusal, SourceSecret};

const SIGNATURE: &str = "stripe-signature";

/// The settings of a Stripe webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stripe {
    /// How far its clock may be from ours.
    #[serde(default)]
    pub tolerance: Tolerance,
}

impl Stripe {
    pub(super) fn verify(
        &self,
        secrets: &[SourceSecret],
        request: &InboundRequest<'_>,
        now: i64,
    ) -> Result<(), Refusal> {
        let entries = entries(SIGNATURE, request.header(SIGNATURE)?, ',', "t", "v1")?;
        self.tolerance.judge(entries.timestamp, now)?;
        let parts = [entries.timestamp.as_bytes(), b".", request.body];
        matches(Algorithm::Sha256, secrets, &parts, &entries.tags)
    }
}
