//! Twilio: `X-Twilio-Signature: <base64>`, HMAC-SHA1 over the URL and the sorted fields of the form.
//!
//! <https://www.twilio.com/docs/usage/webhooks/webhooks-security>. The URL is the one that Twilio
//! called: it is put together from the base that the source names and the request target as it came,
//! so that a proxy which ends TLS or another port changes nothing, and no header of the request is
//! believed. Twilio signs with and without the port, depending on the product; both are tried.
//!
//! A form is signed by the text of its fields, not by its bytes, and a name is joined to its value
//! without anything between: whoever holds a signed request can write it in other bytes of the same
//! meaning. A body of another kind is covered by its SHA-256 in the signed URL (`bodySHA256`).

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use url::Url;

use super::{Algorithm, Encoding};
use crate::source::mac::{matches, single_tag};
use crate::source::{InboundRequest, Refusal, SourceSecret};
use crate::submission::content::decoded;

const SIGNATURE: &str = "x-twilio-signature";

/// The settings of a Twilio webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Twilio {
    /// Scheme, host and port under which Twilio reaches this service.
    pub public_base: PublicBase,
    /// SHA-1, or SHA-256 where a webhooks rule of the account says so.
    #[serde(default = "sha1")]
    pub algorithm: Algorithm,
}

fn sha1() -> Algorithm {
    Algorithm::Sha1
}

impl Twilio {
    pub(super) fn verify(
        &self,
        secrets: &[SourceSecret],
        request: &InboundRequest<'_>,
    ) -> Result<(), Refusal> {
        let tag = single_tag(SIGNATURE, request.header(SIGNATURE)?, "", Encoding::Base64)?;
        let fields = match request.body {
            [] => Vec::new(),
            body if request.is_form() => signed_fields(body),
            body => {
                check_body_digest(request.target, body)?;
                Vec::new()
            }
        };
        let verified = |base: &str| {
            let parts: Vec<&[u8]> = [base.as_bytes(), request.target.as_bytes()]
                .into_iter()
                .chain(fields.iter().flat_map(|(name, value)| [&**name, &**value]))
                .collect();
            matches(self.algorithm, secrets, &parts, &tag)
        };
        let [as_named, otherwise] = &self.public_base.spellings;
        verified(as_named).or_else(|refusal| match refusal {
            Refusal::Mismatch => verified(otherwise),
            other => Err(other),
        })
    }
}

/// The fields as Twilio signs them: sorted by name, each value of a name once, sorted.
fn signed_fields(body: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pairs = body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
    let mut fields: Vec<(Vec<u8>, Vec<u8>)> = pairs
        .map(|pair| {
            let mut halves = pair.splitn(2, |byte| *byte == b'=');
            let (name, value) = (halves.next().unwrap_or_default(), halves.next());
            (decoded(name).into_owned(), decoded(value.unwrap_or_default()).into_owned())
        })
        .collect();
    fields.sort();
    fields.dedup();
    fields
}

/// Whether the target carries the SHA-256 of the body, which makes the signature cover it.
fn check_body_digest(target: &str, body: &[u8]) -> Result<(), Refusal> {
    let not_covered = Refusal::BodyNotCovered { missing: "`bodySHA256` in the query" };
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let mut named = query.split('&').filter_map(|pair| pair.strip_prefix("bodySHA256="));
    let digest = named.next().ok_or_else(|| not_covered.clone())?;
    if named.next().is_some() {
        return Err(not_covered);
    }
    let digest = hex::decode(digest).map_err(|_| not_covered)?;
    let same: bool = Sha256::digest(body).as_slice().ct_eq(&digest).into();
    if same { Ok(()) } else { Err(Refusal::Mismatch) }
}

/// The beginning of a URL: scheme, host and perhaps a port, and nothing behind them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicBase {
    /// As its owner named it, and with the port that was left out, or without the one that was named.
    spellings: [String; 2],
}

/// The text is no base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`public_base` is `https://` or `http://`, a host and perhaps a port, at most 300 bytes")]
pub struct PublicBaseError;

impl TryFrom<String> for PublicBase {
    type Error = PublicBaseError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let text = text.strip_suffix('/').unwrap_or(&text);
        let url = Url::parse(text).map_err(|_| PublicBaseError)?;
        let bare = text.len() <= 300
            && matches!(url.scheme(), "http" | "https")
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        let (Some(host), true) = (url.host_str(), bare) else { return Err(PublicBaseError) };
        let without = format!("{}://{host}", url.scheme());
        let port = url.port_or_known_default().ok_or(PublicBaseError)?;
        let with = format!("{without}:{port}");
        let named = text.split_once("://").is_some_and(|(_, rest)| {
            rest.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
        });
        Ok(Self { spellings: if named { [with, without] } else { [without, with] } })
    }
}

impl From<PublicBase> for String {
    fn from(base: PublicBase) -> Self {
        let [named, _] = base.spellings;
        named
    }
}
