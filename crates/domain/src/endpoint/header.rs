//! Headers that an endpoint's owner adds to its deliveries, an `authorization` for instance.
//!
//! Their values are secrets: they are sealed at rest and never shown again. A name that belongs to
//! Fencepost, to the connection or to the body is refused (RFC 9110, sections 7.6.1 and 8).

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// The most custom headers of an endpoint.
pub const HEADERS_MAX: usize = 20;
/// The most bytes of a header's name.
pub const HEADER_NAME_BYTES_MAX: usize = 128;
/// The most bytes of a header's value.
pub const HEADER_VALUE_BYTES_MAX: usize = 1_024;
/// The most bytes of all names and values of an endpoint together: what many receivers take at most.
pub const HEADERS_BYTES_MAX: usize = 8_192;

/// What is shown in place of a value.
pub const REDACTED: &str = "***";

/// Names that are ours, or that say how the connection or the body is to be read.
const RESERVED: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "date",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Beginnings of such names.
const RESERVED_PREFIXES: &[&str] = &["content-", "fencepost-", "proxy-", "webhook-"];

/// Whether a header of this name is never a custom one. The name is in lower case.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Up to 20 custom headers, each name once and in lower case. `Debug` shows no value.
#[derive(Clone, Default)]
pub struct CustomHeaders(Vec<(String, SecretString)>);

/// Why a header cannot be a custom one. It never holds any part of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum HeaderError {
    /// There are more than [`HEADERS_MAX`].
    #[error("must have at most {HEADERS_MAX} headers, this one has {count}")]
    TooMany {
        /// How many were given.
        count: usize,
    },
    /// All names and values together are longer than [`HEADERS_BYTES_MAX`].
    #[error(
        "must have at most {HEADERS_BYTES_MAX} bytes of names and values, this one has {bytes}"
    )]
    TooLong {
        /// How many bytes were given.
        bytes: usize,
    },
    /// The name is no token of 1 to [`HEADER_NAME_BYTES_MAX`] bytes (RFC 9110, section 5.6.2).
    #[error("the name of header {position} is not a token of 1 to {HEADER_NAME_BYTES_MAX} bytes")]
    NameMalformed {
        /// Which header, counted from 1.
        position: usize,
    },
    /// The name is one of those that are not the owner's to set.
    #[error("`{name}` cannot be set: it belongs to Fencepost, to the connection or to the body")]
    Reserved {
        /// The name in lower case.
        name: String,
    },
    /// Two names differ in letter case at most.
    #[error("`{name}` is given more than once")]
    Repeated {
        /// The name in lower case.
        name: String,
    },
    /// The value has none or too many bytes, or others than visible ASCII, space and tab, or begins or
    /// ends with one of these two.
    #[error(
        "the value of `{name}` is not 1 to {HEADER_VALUE_BYTES_MAX} bytes of visible ASCII, with \
         spaces and tabs inside only"
    )]
    ValueMalformed {
        /// The name in lower case.
        name: String,
    },
    /// The value is the one that is shown in place of every value.
    #[error("the value of `{name}` is the redacted one: send the value itself")]
    ValueRedacted {
        /// The name in lower case.
        name: String,
    },
}

impl HeaderError {
    /// The stable code of this error in answers of the API.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooMany { .. } => "headers_too_many",
            Self::TooLong { .. } => "headers_too_long",
            Self::NameMalformed { .. } => "header_name_malformed",
            Self::Reserved { .. } => "header_reserved",
            Self::Repeated { .. } => "header_repeated",
            Self::ValueMalformed { .. } => "header_value_malformed",
            Self::ValueRedacted { .. } => "header_value_redacted",
        }
    }
}

impl CustomHeaders {
    /// Reads names, in any letter case, with their values. The order is kept.
    ///
    /// # Errors
    /// [`HeaderError`], which names the limit.
    pub fn parse(
        headers: impl IntoIterator<Item = (String, SecretString)>,
    ) -> Result<Self, HeaderError> {
        let mut parsed: Vec<(String, SecretString)> = Vec::new();
        let mut bytes = 0;
        for ((name, value), position) in headers.into_iter().zip(1..) {
            let name = parse_name(&name, position)?;
            if parsed.iter().any(|(earlier, _)| *earlier == name) {
                return Err(HeaderError::Repeated { name });
            }
            check_value(&name, value.expose_secret())?;
            bytes += name.len() + value.expose_secret().len();
            parsed.push((name, value));
        }
        match parsed.len() {
            0..=HEADERS_MAX => {}
            count => return Err(HeaderError::TooMany { count }),
        }
        if bytes > HEADERS_BYTES_MAX {
            return Err(HeaderError::TooLong { bytes });
        }
        Ok(Self(parsed))
    }

    /// Takes what was parsed when it was stored, perhaps under other rules. Whoever sends them asks
    /// [`is_reserved`] again.
    #[must_use]
    pub fn of_stored(headers: Vec<(String, SecretString)>) -> Self {
        Self(headers)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, in lower case.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The names with their values, to be sealed or sent.
    pub fn expose(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.expose_secret()))
    }
}

impl fmt::Debug for CustomHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

fn parse_name(name: &str, position: usize) -> Result<String, HeaderError> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !(1..=HEADER_NAME_BYTES_MAX).contains(&name.len()) || !name.bytes().all(token) {
        return Err(HeaderError::NameMalformed { position });
    }
    let name = name.to_ascii_lowercase();
    if is_reserved(&name) { Err(HeaderError::Reserved { name }) } else { Ok(name) }
}

fn check_value(name: &str, value: &str) -> Result<(), HeaderError> {
    let name = || name.to_owned();
    if value == REDACTED {
        return Err(HeaderError::ValueRedacted { name: name() });
    }
    let inside = |byte: u8| byte.is_ascii_graphic() || byte == b' ' || byte == b'\t';
    let formed = (1..=HEADER_VALUE_BYTES_MAX).contains(&value.len())
        && value.bytes().all(inside)
        && value.trim_matches([' ', '\t']).len() == value.len();
    if formed { Ok(()) } else { Err(HeaderError::ValueMalformed { name: name() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(headers: &[(&str, &str)]) -> Result<CustomHeaders, HeaderError> {
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), SecretString::from(value));
        CustomHeaders::parse(headers.iter().map(own))
    }

    fn code(name: &str, value: &str) -> &'static str {
        parse(&[(name, value)]).unwrap_err().code()
    }

    /// Case C070.
    #[test]
    fn a_name_that_is_ours_or_the_connections_is_refused_in_any_letter_case() {
        for name in [
            "Webhook-Signature",
            "WEBHOOK-ID",
            "webhook-timestamp",
            "Webhook-Anything",
            "content-type",
            "Content-Length",
            "content-encoding",
            "Content-Digest",
            "Host",
            "Transfer-Encoding",
            "Connection",
            "Expect",
            "Accept-Encoding",
            "accept",
            "User-Agent",
            "TE",
            "Trailer",
            "Upgrade",
            "Keep-Alive",
            "Proxy-Authorization",
            "proxy-connection",
            "HTTP2-Settings",
            "Fencepost-Event-Type",
            "Date",
        ] {
            assert_eq!(code(name, "x"), "header_reserved", "{name}");
        }
        for name in ["Authorization", "X-Api-Key", "Cookie", "x-webhook-id", "contents"] {
            assert!(parse(&[(name, "x")]).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_name_is_a_token_and_a_value_visible_ascii() {
        for name in ["", "a b", "a:b", "\u{e9}", "a\r\n", ":path", "a\0", &"n".repeat(129)] {
            assert_eq!(code(name, "x"), "header_name_malformed", "{name:?}");
        }
        for value in ["", " x", "x ", "x\r\ny: z", "\u{e9}", "\0", "x\t", &"v".repeat(1_025)] {
            assert_eq!(code("x", value), "header_value_malformed", "{value:?}");
        }
        assert_eq!(code("x", "***"), "header_value_redacted");
        assert!(parse(&[("x", &"v".repeat(1_024)), ("y", "a \t b")]).is_ok());
    }

    #[test]
    fn there_are_at_most_twenty_each_once_and_all_within_8_kib() {
        assert_eq!(parse(&[("X-A", "1"), ("x-a", "2")]).unwrap_err().code(), "header_repeated");
        let own =
            |n: usize, bytes: usize| (format!("x-{n}"), SecretString::from("v".repeat(bytes)));
        assert!(CustomHeaders::parse((0..20).map(|n| own(n, 1))).is_ok());
        let many = CustomHeaders::parse((0..21).map(|n| own(n, 1))).unwrap_err();
        assert_eq!(many, HeaderError::TooMany { count: 21 });
        let long = CustomHeaders::parse((0..8).map(|n| own(n, 1_024))).unwrap_err();
        assert_eq!(long.code(), "headers_too_long");
    }

    #[test]
    fn debug_output_shows_names_and_no_value() {
        let headers =
            parse(&[("X-Api-Key", "hunter2"), ("Authorization", "Bearer hunter2")]).unwrap();
        assert_eq!(format!("{headers:?}"), "[\"x-api-key\", \"authorization\"]");
        let refused = format!("{:?}", parse(&[("x", "hunter2\r")]).unwrap_err());
        assert!(!refused.contains("hunter2"), "{refused}");
    }
}
