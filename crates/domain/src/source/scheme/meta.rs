//! Meta: `X-Hub-Signature-256: sha256=<hex>`, HMAC-SHA256 over the body, with the app's secret.
//!
//! <https://developers.facebook.com/docs/graph-api/webhooks/getting-started>. Before it sends, it asks
//! with a `GET` that carries a token which the customer chose; see [`challenge`](crate::source::challenge).

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::github::verify_hub_signature;
use crate::source::{InboundRequest, Refusal, SourceSecret};

/// The settings of a Meta app's webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// What Meta shows when it asks for the first time.
    pub verify_token: VerifyToken,
}

impl Meta {
    #[expect(clippy::unused_self, reason = "every scheme has this shape")]
    pub(super) fn verify(
        &self,
        secrets: &[SourceSecret],
        request: &InboundRequest<'_>,
    ) -> Result<(), Refusal> {
        verify_hub_signature(secrets, request)
    }
}

/// How a kept token begins; the rest is its SHA-256 in hexadecimal.
const KEPT: &str = "sha256:";

/// A token that is compared and never shown: only its SHA-256 is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VerifyToken([u8; 32]);

impl VerifyToken {
    /// Whether it is that token, in constant time.
    #[must_use]
    pub fn is(&self, token: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        self.0.ct_eq(&digest).into()
    }
}

impl TryFrom<String> for VerifyToken {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let kept = text.strip_prefix(KEPT).and_then(|digest| hex::decode(digest).ok());
        match kept.and_then(|digest| digest.try_into().ok()) {
            Some(digest) => Ok(Self(digest)),
            None if (8..=256).contains(&text.len()) => Ok(Self(Sha256::digest(text).into())),
            None => Err("`verify_token` has 8 to 256 bytes"),
        }
    }
}

impl From<VerifyToken> for String {
    fn from(token: VerifyToken) -> Self {
        format!("{KEPT}{}", hex::encode(token.0))
    }
}
