//! Shopify: `X-Shopify-Hmac-SHA256: <base64>`, HMAC-SHA256 over the body.
//!
//! <https://shopify.dev/docs/apps/build/webhooks/verify-deliveries>. The secret is the app's client
//! secret. Nothing that is signed says when: a copy is recognised by its id alone.

use serde::{Deserialize, Serialize};

use super::{Algorithm, Encoding};
use crate::source::mac::{matches, single_tag};
use crate::source::{InboundRequest, Refusal, SourceSecret};

const SIGNATURE: &str = "x-shopify-hmac-sha256";

/// The settings of a Shopify app: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shopify {}

impl Shopify {
    #[expect(clippy::unused_self, reason = "every scheme has this shape")]
    pub(super) fn verify(
        &self,
        secrets: &[SourceSecret],
        request: &InboundRequest<'_>,
    ) -> Result<(), Refusal> {
        let tag = single_tag(SIGNATURE, request.header(SIGNATURE)?, "", Encoding::Base64)?;
        matches(Algorithm::Sha256, secrets, &[request.body], &tag)
    }
}
