//! `Authorization: Basic` (RFC 7617). It proves who sent and nothing about what was sent.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use super::api_key::is_one_of;
use crate::source::{InboundRequest, Refusal, SourceSecret};

const AUTHORIZATION: &str = "authorization";

/// The settings of a sender that shows user and password: none. The secret is `user:password`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BasicAuth {}

impl BasicAuth {
    #[expect(clippy::unused_self, reason = "every scheme has this shape")]
    pub(super) fn verify(
        &self,
        secrets: &[SourceSecret],
        request: &InboundRequest<'_>,
    ) -> Result<(), Refusal> {
        let malformed = || Refusal::HeaderMalformed {
            header: AUTHORIZATION.to_owned(),
            expected: "`Basic` and standard base64 with padding",
        };
        let value = request.header(AUTHORIZATION)?;
        let (scheme, credentials) = value.split_once(' ').ok_or_else(malformed)?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err(malformed());
        }
        let shown = STANDARD.decode(credentials.trim_start()).map_err(|_| malformed())?;
        is_one_of(&shown, secrets)
    }
}
