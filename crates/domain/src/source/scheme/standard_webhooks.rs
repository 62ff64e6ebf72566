//! Standard Webhooks 1.0.0: `v1` (HMAC-SHA256) and `v1a` (Ed25519) over id, time and body.
//!
//! A source may hold shared secrets (`whsec_…`) and public keys (`whpk_…`) at once; one signature that
//! matches one of them is enough.

use serde::{Deserialize, Serialize};

use super::Tolerance;
use crate::signing::{
    SIGNATURES_MAX, SigningSecret, VerifyError, WEBHOOK_ID, WEBHOOK_SIGNATURE, WEBHOOK_TIMESTAMP,
    verify, verify_v1a,
};
use crate::source::{InboundRequest, Refusal, SourceSecret};

/// The settings of a sender that follows Standard Webhooks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandardWebhooks {
    /// How far its clock may be from ours.
    #[serde(default)]
    pub tolerance: Tolerance,
}

impl StandardWebhooks {
    pub(super) fn verify(
        &self,
        secrets: &[SourceSecret],
        request: &InboundRequest<'_>,
        now: i64,
    ) -> Result<(), Refusal> {
        let names = [WEBHOOK_ID, WEBHOOK_TIMESTAMP, WEBHOOK_SIGNATURE];
        verify_under(names, self.tolerance, secrets, request, now)
    }
}

/// The same under other names of the three headers.
pub(super) fn verify_under(
    [id, timestamp, signature]: [&'static str; 3],
    tolerance: Tolerance,
    secrets: &[SourceSecret],
    request: &InboundRequest<'_>,
    now: i64,
) -> Result<(), Refusal> {
    let (id, at, list) =
        (request.header(id)?, request.header(timestamp)?, request.header(signature)?);
    // The signed text joins the parts with full stops: an id that has one could be split elsewhere.
    if id.contains('.') {
        let header = names_header(signature, "id");
        return Err(Refusal::HeaderMalformed { header, expected: "an id without a full stop" });
    }
    let shared: Vec<SigningSecret> =
        secrets.iter().filter_map(|secret| secret.signing().cloned()).collect();
    let public: Vec<_> = secrets.iter().filter_map(SourceSecret::public).collect();
    if shared.is_empty() && public.is_empty() {
        return Err(Refusal::NoSecret);
    }
    let (body, seconds) = (request.body, tolerance.seconds());
    let by_v1 = || verify(&shared, id, at, list, body, now, seconds);
    let by_v1a = || verify_v1a(&public, id, at, list, body, now, seconds);
    let verified = match (shared.is_empty(), public.is_empty()) {
        (false, true) => by_v1(),
        (true, _) => by_v1a(),
        (false, false) => by_v1().or_else(|_| by_v1a()),
    };
    verified.map_err(|error| refusal(error, signature))
}

fn names_header(signature: &str, part: &str) -> String {
    signature.replace("signature", part)
}

fn refusal(error: VerifyError, signature: &str) -> Refusal {
    let header = || signature.to_owned();
    match error {
        VerifyError::MalformedTimestamp => Refusal::TimestampMalformed,
        VerifyError::TooOld { by_seconds } => Refusal::Stale { by_seconds },
        VerifyError::TooNew { by_seconds } => Refusal::NotYetValid { by_seconds },
        VerifyError::TooManySignatures => {
            Refusal::SignaturesTooMany { header: header(), limit: SIGNATURES_MAX }
        }
        VerifyError::NoSupportedSignature => Refusal::HeaderMalformed {
            header: header(),
            expected: "a list with a signature that one of the secrets could have made",
        },
        VerifyError::Mismatch => Refusal::Mismatch,
    }
}
