//! GitHub: `X-Hub-Signature-256: sha256=<hex>`, HMAC-SHA256 over the body.
//!
//! <https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries>. Nothing that is
//! signed says when: a copy is recognised by its id alone. `X-GitHub-Delivery` is not signed either.

use serde::{Deserialize, Serialize};

use super::{Algorithm, Encoding};
use crate::source::mac::{matches, single_tag};
use crate::source::{InboundRequest, Refusal, SourceSecret};

pub(super) const SIGNATURE: &str = "x-hub-signature-256";
const LEGACY: &str = "x-hub-signature";

/// The settings of a GitHub webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Github {
    /// Whether `X-Hub-Signature` (SHA-1) is enough where the newer header is missing: for old
    /// GitHub Enterprise servers. Where the newer one is there, it decides.
    #[serde(default)]
    pub legacy_sha1: bool,
}

impl Github {
    pub(super) fn verify(
        &self,
        secrets: &[SourceSecret],
        request: &InboundRequest<'_>,
    ) -> Result<(), Refusal> {
        if self.legacy_sha1 && request.optional_header(SIGNATURE)?.is_none() {
            let tag = single_tag(LEGACY, request.header(LEGACY)?, "sha1=", Encoding::Hex)?;
            return matches(Algorithm::Sha1, secrets, &[request.body], &tag);
        }
        verify_hub_signature(secrets, request)
    }
}

/// What GitHub and Meta share.
pub(super) fn verify_hub_signature(
    secrets: &[SourceSecret],
    request: &InboundRequest<'_>,
) -> Result<(), Refusal> {
    let tag = single_tag(SIGNATURE, request.header(SIGNATURE)?, "sha256=", Encoding::Hex)?;
    matches(Algorithm::Sha256, secrets, &[request.body], &tag)
}
