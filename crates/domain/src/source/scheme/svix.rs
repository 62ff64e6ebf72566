//! Svix: the signature of Standard Webhooks under `svix-id`, `svix-timestamp` and `svix-signature`.
//!
//! <https://docs.svix.com/receiving/verifying-payloads/how-manual>

use serde::{Deserialize, Serialize};

use super::Tolerance;
use super::standard_webhooks::verify_under;
use crate::source::{InboundRequest, Refusal, SourceSecret};

/// The settings of a sender that uses Svix.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Svix {
    /// How far its clock may be from ours.
    #[serde(default)]
    pub tolerance: Tolerance,
}

impl Svix {
    pub(super) fn verify(
        &self,
        secrets: &[SourceSecret],
        request: &InboundRequest<'_>,
        now: i64,
    ) -> Result<(), Refusal> {
        let names = ["svix-id", "svix-timestamp", "svix-signature"];
        verify_under(names, self.tolerance, secrets, request, now)
    }
}
