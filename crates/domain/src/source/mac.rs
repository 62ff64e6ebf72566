//! HMAC with several secrets, and the text forms of its result.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac};
use serde::{Deserialize, Serialize};
use sha1::Sha1;
use sha2::{Sha256, Sha512};

use super::{Refusal, SourceSecret};

/// The most signatures of one header that are tried. It bounds the work that a stranger can cause.
pub const SIGNATURES_MAX: usize = 20;

/// The hash function below the HMAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Broken as a hash, not as an HMAC: for senders that offer nothing else.
    Sha1,
    /// What nearly everybody uses.
    #[default]
    Sha256,
    /// The longer one.
    Sha512,
}

/// How the bytes of a signature are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// Two digits a byte, in either letter case.
    #[default]
    Hex,
    /// The standard alphabet with padding (RFC 4648, section 4).
    Base64,
}

impl Encoding {
    /// The bytes; none if the text is not of this encoding.
    pub(super) fn decode(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Hex => hex::decode(text).ok(),
            Self::Base64 => STANDARD.decode(text).ok(),
        }
    }

    /// What a header of this encoding should have been.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Hex => "hexadecimal",
            Self::Base64 => "standard base64 with padding",
        }
    }
}

/// Whether one of `tags` was made with one of `secrets` over the parts, one after another.
///
/// The comparison takes constant time (`Mac::verify_slice`). A tag of another length matches nothing.
pub(super) fn matches(
    algorithm: Algorithm,
    secrets: &[SourceSecret],
    parts: &[&[u8]],
    tags: &[Vec<u8>],
) -> Result<(), Refusal> {
    if secrets.is_empty() {
        return Err(Refusal::NoSecret);
    }
    let verified = secrets.iter().any(|secret| {
        let key = secret.expose_bytes();
        match algorithm {
            Algorithm::Sha1 => Hmac::<Sha1>::new_from_slice(key).is_ok_and(|mac| {
                let mac = parts.iter().fold(mac, Mac::chain_update);
                tags.iter().any(|tag| mac.clone().verify_slice(tag).is_ok())
            }),
            Algorithm::Sha256 => Hmac::<Sha256>::new_from_slice(key).is_ok_and(|mac| {
                let mac = parts.iter().fold(mac, Mac::chain_update);
                tags.iter().any(|tag| mac.clone().verify_slice(tag).is_ok())
            }),
            Algorithm::Sha512 => Hmac::<Sha512>::new_from_slice(key).is_ok_and(|mac| {
                let mac = parts.iter().fold(mac, Mac::chain_update);
                tags.iter().any(|tag| mac.clone().verify_slice(tag).is_ok())
            }),
        }
    });
    if verified { Ok(()) } else { Err(Refusal::Mismatch) }
}

/// The one signature of a header: its prefix, then the encoded bytes.
pub(super) fn single_tag(
    header: &str,
    value: &str,
    prefix: &str,
    encoding: Encoding,
) -> Result<Vec<Vec<u8>>, Refusal> {
    let malformed =
        || Refusal::HeaderMalformed { header: header.to_owned(), expected: encoding.expected() };
    let encoded = value.strip_prefix(prefix).ok_or_else(|| Refusal::HeaderMalformed {
        header: header.to_owned(),
        expected: "a signature with the prefix of the scheme",
    })?;
    encoding.decode(encoded).map(|tag| vec![tag]).ok_or_else(malformed)
}

/// A header of named entries, such as `t=1,v1=a,v1=b`: the one time, and the signatures.
pub(super) struct Entries<'a> {
    pub(super) timestamp: &'a str,
    pub(super) tags: Vec<Vec<u8>>,
}

/// Reads such a header. Entries of other names are skipped, and so are signatures that are not
/// hexadecimal: a sender may list others beside the one that matches.
pub(super) fn entries<'a>(
    header: &str,
    value: &'a str,
    separator: char,
    time_name: &str,
    signature_name: &str,
) -> Result<Entries<'a>, Refusal> {
    let malformed = |expected| Refusal::HeaderMalformed { header: header.to_owned(), expected };
    if value.split(separator).nth(SIGNATURES_MAX).is_some() {
        let header = header.to_owned();
        return Err(Refusal::SignaturesTooMany { header, limit: SIGNATURES_MAX });
    }
    let named = |name: &'a str, wanted: &str| name.trim() == wanted;
    let pairs: Vec<(&str, &str)> =
        value.split(separator).filter_map(|entry| entry.split_once('=')).collect();
    let mut times = pairs.iter().filter(|(name, _)| named(name, time_name));
    let Some((_, timestamp)) = times.next() else { return Err(malformed("a list with a time")) };
    if times.next().is_some() {
        return Err(malformed("a list with one time"));
    }
    let signatures = pairs.iter().filter(|(name, _)| named(name, signature_name));
    let tags: Vec<Vec<u8>> =
        signatures.filter_map(|(_, text)| Encoding::Hex.decode(text.trim())).collect();
    if tags.is_empty() {
        return Err(malformed("a list with a hexadecimal signature of the scheme"));
    }
    Ok(Entries { timestamp: timestamp.trim(), tags })
}
