//! A shared key in a header, as it is. It proves who sent and nothing about what was sent.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

use crate::source::{HeaderName, InboundRequest, Refusal, SourceSecret};

/// The settings of a sender that shows a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// The header that holds the key.
    pub header: HeaderName,
    /// What stands before it, such as `Bearer `.
    #[serde(default)]
    pub prefix: String,
}

impl ApiKey {
    pub(super) fn verify(
        &self,
        secrets: &[SourceSecret],
        request: &InboundRequest<'_>,
    ) -> Result<(), Refusal> {
        let header = self.header.as_str();
        let value = request.header(header)?;
        let key = value.strip_prefix(&self.prefix).ok_or_else(|| Refusal::HeaderMalformed {
            header: header.to_owned(),
            expected: "a key with the prefix of the source",
        })?;
        is_one_of(key.as_bytes(), secrets)
    }
}

/// Whether what was shown is one of the secrets. Digests are compared, in constant time and all of
/// them: how long a secret is, and how much of it was right, shows nowhere.
pub(super) fn is_one_of(shown: &[u8], secrets: &[SourceSecret]) -> Result<(), Refusal> {
    if secrets.is_empty() {
        return Err(Refusal::NoSecret);
    }
    let digest = Sha256::digest(shown);
    let equal = |secret: &SourceSecret| {
        Sha256::digest(secret.expose_bytes()).as_slice().ct_eq(digest.as_slice())
    };
    let any = secrets.iter().map(equal).fold(Choice::from(0), |any, equal| any | equal);
    if any.into() { Ok(()) } else { Err(Refusal::Mismatch) }
}
