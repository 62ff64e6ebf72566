//! Slack: `X-Slack-Signature: v0=<hex>`, HMAC-SHA256 over `v0:<seconds>:<body>`.
//!
//! <https://docs.slack.dev/authentication/verifying-requests-from-slack>. The seconds stand in
//! `X-Slack-Request-Timestamp`.

use serde::{Deserialize, Serialize};

use super::{Algorithm, Encoding, Tolerance};
use crate::source::mac::{matches, single_tag};
use crate::source::{InboundRequest, Refusal, SourceSecret};

const SIGNATURE: &str = "x-slack-signature";
const TIMESTAMP: &str = "x-slack-request-timestamp";

/// The settings of a Slack app.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slack {
    /// How far its clock may be from ours.
    #[serde(default)]
    pub tolerance: Tolerance,
}

impl Slack {
    pub(super) fn verify(
        &self,
        secrets: &[SourceSecret],
        request: &InboundRequest<'_>,
        now: i64,
    ) -> Result<(), Refusal> {
        let timestamp = request.header(TIMESTAMP)?;
        self.tolerance.judge(timestamp, now)?;
        let tag = single_tag(SIGNATURE, request.header(SIGNATURE)?, "v0=", Encoding::Hex)?;
        let parts = [b"v0:".as_slice(), timestamp.as_bytes(), b":", request.body];
        matches(Algorithm::Sha256, secrets, &parts, &tag)
    }
}
