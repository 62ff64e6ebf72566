//! A request as it was received.

use serde::{Deserialize, Serialize};

use super::Refusal;

/// The most bytes of a header that a scheme reads. The longest in use is a list of signatures.
pub const HEADER_READ_MAX: usize = 4_096;

/// How long the name of a header may be, in bytes.
pub const HEADER_NAME_MAX: usize = 128;

/// What was received, byte for byte.
#[derive(Debug, Clone, Copy)]
pub struct InboundRequest<'a> {
    /// Path and query as they stood in the request line: not decoded, not sorted.
    pub target: &'a str,
    /// Names, in any letter case, with their values, in the order of the wire.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The body.
    pub body: &'a [u8],
}

impl<'a> InboundRequest<'a> {
    /// The value of a header that may be left out.
    ///
    /// # Errors
    /// [`Refusal`] if it is there more than once, is too long or is not visible ASCII.
    pub fn optional_header(&self, name: &str) -> Result<Option<&'a str>, Refusal> {
        let header = || name.to_ascii_lowercase();
        let mut values = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let Some((_, value)) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(Refusal::HeaderRepeated { header: header() });
        }
        if value.len() > HEADER_READ_MAX {
            return Err(Refusal::HeaderTooLong { header: header(), limit: HEADER_READ_MAX });
        }
        let visible = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
        match str::from_utf8(value) {
            Ok(text) if value.iter().all(visible) => Ok(Some(text)),
            _ => Err(Refusal::HeaderMalformed { header: header(), expected: "visible ASCII" }),
        }
    }

    /// The value of a header that must be there.
    ///
    /// # Errors
    /// As [`optional_header`](Self::optional_header), and if it is missing.
    pub fn header(&self, name: &str) -> Result<&'a str, Refusal> {
        let missing = || Refusal::HeaderMissing { header: name.to_ascii_lowercase() };
        self.optional_header(name)?.ok_or_else(missing)
    }

    /// Whether the body is a form of the kind that browsers send without files.
    #[must_use]
    pub fn is_form(&self) -> bool {
        let content_type = self.optional_header("content-type").ok().flatten().unwrap_or_default();
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
    }
}

/// The name of a header, in lower case: a token (RFC 9110, section 5.6.2).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HeaderName(String);

/// The text is no name of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of a header is a token of 1 to {HEADER_NAME_MAX} bytes")]
pub struct HeaderNameError;

impl HeaderName {
    /// Takes a name in any letter case.
    ///
    /// # Errors
    /// [`HeaderNameError`].
    pub fn parse(text: &str) -> Result<Self, HeaderNameError> {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let fits = (1..=HEADER_NAME_MAX).contains(&text.len()) && text.bytes().all(token);
        if fits { Ok(Self(text.to_ascii_lowercase())) } else { Err(HeaderNameError) }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for HeaderName {
    type Error = HeaderNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<HeaderName> for String {
    fn from(name: HeaderName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_found_in_any_letter_case_and_only_if_it_stands_there_once() {
        let headers: &[(&str, &[u8])] =
            &[("X-One", b"1"), ("x-two", b"2"), ("X-TWO", b"2"), ("x-bad", b"\xff")];
        let request = InboundRequest { target: "/", headers, body: b"" };
        assert_eq!(request.header("x-one"), Ok("1"));
        assert_eq!(request.header("x-two").unwrap_err().code(), "header_repeated");
        assert_eq!(request.header("X-Three").unwrap_err().code(), "header_missing");
        assert_eq!(request.header("x-bad").unwrap_err().code(), "header_malformed");
        let long = vec![b'a'; HEADER_READ_MAX + 1];
        let headers: &[(&str, &[u8])] = &[("x", &long)];
        let request = InboundRequest { target: "/", headers, body: b"" };
        assert_eq!(request.header("x").unwrap_err().code(), "header_too_long");
    }

    #[test]
    fn a_form_is_told_by_its_content_type_whatever_follows_it() {
        for (value, is_form) in [
            ("application/x-www-form-urlencoded", true),
            ("Application/X-WWW-Form-Urlencoded; charset=utf-8", true),
            ("application/json", false),
            ("application/x-www-form-urlencodedx", false),
        ] {
            let headers: &[(&str, &[u8])] = &[("Content-Type", value.as_bytes())];
            assert_eq!(InboundRequest { target: "/", headers, body: b"" }.is_form(), is_form);
        }
    }
}
