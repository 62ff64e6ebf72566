//! An HMAC whose parts the owner of the source names: for senders that have no module here.

use serde::{Deserialize, Serialize};

use super::{Algorithm, Encoding, Tolerance};
use crate::source::mac::{matches, single_tag};
use crate::source::{HeaderName, InboundRequest, Refusal, SourceSecret};

/// The most bytes of a signed text's template, and of a prefix.
pub const SIGNED_BYTES_MAX: usize = 512;

/// The settings of a sender that signs with an HMAC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hmac {
    /// The header that holds the signature.
    pub header: HeaderName,
    /// How the signature is written.
    #[serde(default)]
    pub encoding: Encoding,
    /// The hash function.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// What stands before the signature in its header, such as `sha256=`.
    #[serde(default)]
    pub prefix: String,
    /// What is signed.
    #[serde(default)]
    pub signed: SignedText,
    /// The header that holds the signed time, in seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp_header: Option<HeaderName>,
    /// How far the signed time may be from now.
    #[serde(default)]
    pub tolerance: Tolerance,
}

impl Hmac {
    /// Whether the settings agree with each other.
    pub(super) fn check(&self) -> Result<(), SignedTextError> {
        if self.prefix.len() > SIGNED_BYTES_MAX {
            return Err(SignedTextError::PrefixTooLong);
        }
        // A time that is not signed can be replaced by whoever replays the request.
        match (&self.timestamp_header, self.signed.has(&Part::Timestamp)) {
            (Some(_), true) | (None, false) => Ok(()),
            (Some(_), false) => Err(SignedTextError::TimestampUnsigned),
            (None, true) => Err(SignedTextError::TimestampNowhere),
        }
    }

    pub(super) fn verify(
        &self,
        secrets: &[SourceSecret],
        request: &InboundRequest<'_>,
        now: i64,
    ) -> Result<(), Refusal> {
        let timestamp = match &self.timestamp_header {
            Some(header) => {
                let timestamp = request.header(header.as_str())?;
                self.tolerance.judge(timestamp, now)?;
                timestamp
            }
            None => "",
        };
        let header = self.header.as_str();
        let tag = single_tag(header, request.header(header)?, &self.prefix, self.encoding)?;
        let mut parts = Vec::new();
        for part in &self.signed.parts {
            parts.push(match part {
                Part::Literal(text) => text.as_bytes(),
                Part::Body => request.body,
                Part::Timestamp => timestamp.as_bytes(),
                Part::Header(name) => request.header(name.as_str())?.as_bytes(),
            });
        }
        matches(self.algorithm, secrets, &parts, &tag)
    }
}

/// A template of the signed text: `{body}` once, and `{timestamp}`, `{header:name}` and other text
/// around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SignedText {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Body,
    Timestamp,
    Header(HeaderName),
}

/// Why the settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignedTextError {
    /// It is too long.
    #[error("`signed` has at most {SIGNED_BYTES_MAX} bytes")]
    TooLong,
    /// The prefix is too long.
    #[error("`prefix` has at most {SIGNED_BYTES_MAX} bytes")]
    PrefixTooLong,
    /// The body does not stand in it, or more than once.
    #[error("`signed` has `{{body}}` once: what is not signed proves nothing")]
    BodyNotOnce,
    /// Something in braces is none of the names.
    #[error(
        "`signed` has `{{body}}`, `{{timestamp}}` and `{{header:NAME}}` in braces, nothing else"
    )]
    UnknownPart,
    /// The time is not signed.
    #[error(
        "`timestamp_header` needs `{{timestamp}}` in `signed`: an unsigned time proves nothing"
    )]
    TimestampUnsigned,
    /// There is no header with the time.
    #[error("`{{timestamp}}` in `signed` needs `timestamp_header`")]
    TimestampNowhere,
}

impl SignedText {
    fn has(&self, wanted: &Part) -> bool {
        self.parts.iter().any(|part| part == wanted)
    }
}

impl Default for SignedText {
    fn default() -> Self {
        Self { parts: vec![Part::Body] }
    }
}

impl TryFrom<String> for SignedText {
    type Error = SignedTextError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.len() > SIGNED_BYTES_MAX {
            return Err(SignedTextError::TooLong);
        }
        let mut parts = Vec::new();
        let mut rest = text.as_str();
        while let Some((literal, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or(SignedTextError::UnknownPart)?;
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            parts.push(match name {
                "body" => Part::Body,
                "timestamp" => Part::Timestamp,
                _ => {
                    let header = name.strip_prefix("header:");
                    let header = header.and_then(|name| HeaderName::parse(name).ok());
                    Part::Header(header.ok_or(SignedTextError::UnknownPart)?)
                }
            });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        match parts.iter().filter(|part| **part == Part::Body).count() {
            1 => Ok(Self { parts }),
            _ => Err(SignedTextError::BodyNotOnce),
        }
    }
}

impl From<SignedText> for String {
    fn from(text: SignedText) -> Self {
        let part = |part: Part| match part {
            Part::Literal(text) => text,
            Part::Body => "{body}".to_owned(),
            Part::Timestamp => "{timestamp}".to_owned(),
            Part::Header(name) => format!("{{header:{}}}", name.as_str()),
        };
        text.parts.into_iter().map(part).collect()
    }
}
