//! The media type of a payload.

use std::fmt;

/// The most bytes of a content type: 255.
pub const CONTENT_TYPE_BYTES_MAX: usize = 255;

/// A media type with its parameters (RFC 9110 section 8.3.1), 1 to 255 bytes of ASCII.
///
/// It is kept as given and sent as given. Bytes above `0x7E`, which a quoted string may hold by the
/// grammar (`obs-text`), are refused: clients disagree on what they mean.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContentType(String);

/// Why a value is not a content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ContentTypeError {
    /// The value is empty.
    #[error("a content type has 1 to {CONTENT_TYPE_BYTES_MAX} bytes, this one none")]
    Empty,
    /// The value is too long.
    #[error("a content type has at most {limit} bytes, this one {length}")]
    TooLong {
        /// The length in bytes.
        length: usize,
        /// [`CONTENT_TYPE_BYTES_MAX`].
        limit: usize,
    },
    /// The value does not follow the grammar.
    #[error("a content type is `type/subtype` with optional `; name=value` parameters in ASCII")]
    Malformed,
}

impl ContentTypeError {
    /// The stable code of this error in answers of the API.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "content_type_empty",
            Self::TooLong { .. } => "content_type_too_long",
            Self::Malformed => "content_type_malformed",
        }
    }
}

impl Default for ContentType {
    /// `application/octet-stream`: what a payload is when nobody says (RFC 9110 section 8.3).
    fn default() -> Self {
        Self(String::from("application/octet-stream"))
    }
}

impl ContentType {
    /// `application/json`.
    #[must_use]
    pub fn json() -> Self {
        Self(String::from("application/json"))
    }

    /// Reads the value of a `Content-Type` header, without spaces around it.
    ///
    /// # Errors
    /// [`ContentTypeError`], which names the limit.
    pub fn parse(value: &[u8]) -> Result<Self, ContentTypeError> {
        match value.len() {
            0 => return Err(ContentTypeError::Empty),
            1..=CONTENT_TYPE_BYTES_MAX => {}
            length => {
                return Err(ContentTypeError::TooLong { length, limit: CONTENT_TYPE_BYTES_MAX });
            }
        }
        let text = str::from_utf8(value).map_err(|_| ContentTypeError::Malformed)?;
        let after_essence =
            skip_token(text).and_then(|rest| rest.strip_prefix('/')).and_then(skip_token);
        if after_essence.is_some_and(are_parameters) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ContentTypeError::Malformed)
        }
    }

    /// The content type as given, 1 to 255 bytes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `type/subtype` without parameters, in the letter case given.
    #[must_use]
    pub fn essence(&self) -> &str {
        self.0.split([';', ' ', '\t']).next().unwrap_or_default()
    }

    /// Whether it declares JSON: `application/json`, `text/json` or a subtype that ends in `+json`
    /// (RFC 6839 section 3.1), in any letter case.
    #[must_use]
    pub fn is_json(&self) -> bool {
        let essence = self.essence().to_ascii_lowercase();
        matches!(essence.as_str(), "application/json" | "text/json") || essence.ends_with("+json")
    }
}

impl fmt::Display for ContentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What follows a token (RFC 9110 section 5.6.2). `None` if there is none.
fn skip_token(text: &str) -> Option<&str> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let rest = text.trim_start_matches(is_token);
    (rest.len() < text.len()).then_some(rest)
}

/// What follows a quoted string (RFC 9110 section 5.6.4, without `obs-text`).
fn skip_quoted_string(text: &str) -> Option<&str> {
    let mut rest = text.strip_prefix('"')?.chars();
    loop {
        let character = match rest.next()? {
            '"' => return Some(rest.as_str()),
            '\\' => rest.next()?,
            other => other,
        };
        if !matches!(character, '\t' | ' '..='~') {
            return None;
        }
    }
}

/// Whether the whole text is `*( OWS ";" OWS [ parameter ] )` (RFC 9110 section 5.6.6).
fn are_parameters(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let Some(parameter) = skip_spaces(rest).strip_prefix(';').map(skip_spaces) else {
            return false;
        };
        rest = match skip_token(parameter) {
            None => parameter,
            Some(after_name) => {
                let value = after_name.strip_prefix('=');
                match value
                    .and_then(|value| skip_token(value).or_else(|| skip_quoted_string(value)))
                {
                    None => return false,
                    Some(after_value) => after_value,
                }
            }
        };
    }
    true
}

fn skip_spaces(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<ContentType, ContentTypeError> {
        ContentType::parse(text.as_bytes())
    }

    #[test]
    fn what_follows_the_grammar_is_kept_as_given() {
        for (text, essence) in [
            ("application/json", "application/json"),
            ("Text/Plain; Charset=UTF-8", "Text/Plain"),
            ("text/plain;charset=utf-8", "text/plain"),
            ("text/plain \t;\t charset=utf-8", "text/plain"),
            ("text/plain;", "text/plain"),
            ("text/plain; ; a=b;;c=d", "text/plain"),
            ("a/b;c=\"\"", "a/b"),
            ("a/b;c=\"x; y=\\\"z\\\\\t\";d=e", "a/b"),
            ("application/vnd.api+json; ext=\"https://jsonapi.org/a\"", "application/vnd.api+json"),
            ("!#$%&'*+-.^_`|~/x", "!#$%&'*+-.^_`|~/x"),
        ] {
            let content_type = parse(text).unwrap();
            assert_eq!(content_type.as_str(), text);
            assert_eq!(content_type.to_string(), text);
            assert_eq!(content_type.essence(), essence);
        }
    }

    #[test]
    fn what_does_not_is_refused() {
        for text in [
            "json",
            "/",
            "a/",
            "/b",
            "a/b/c",
            " a/b",
            "a/b ",
            "a /b",
            "a/b, c/d",
            "a/b c=d",
            "a/b;c",
            "a/b;c=",
            "a/b;c =d",
            "a/b;c= d",
            "a/b;=d",
            "a/b;c=\"",
            "a/b;c=\"d\\\"",
            "a/b;c=\"d\"e",
            "a/b;c=\"\u{7f}\"",
            "a/b;c=\"ü\"",
            "a/ü",
            "a/b\r\nx: y",
            "a/b;c=\"\n\"",
            "a/b\0",
        ] {
            assert_eq!(parse(text), Err(ContentTypeError::Malformed), "{text:?}");
        }
        assert_eq!(ContentType::parse(b"a/\xFF"), Err(ContentTypeError::Malformed));
    }

    #[test]
    fn the_limit_is_255_bytes() {
        assert_eq!(parse(""), Err(ContentTypeError::Empty));
        assert!(parse(&format!("a/{}", "b".repeat(253))).is_ok());
        let refused = parse(&format!("a/{}", "b".repeat(254))).unwrap_err();
        assert_eq!(refused, ContentTypeError::TooLong { length: 256, limit: 255 });
        assert_eq!(refused.code(), "content_type_too_long");
    }

    #[test]
    fn json_is_recognised_in_any_letter_case_and_with_parameters() {
        for text in [
            "application/json",
            "APPLICATION/JSON; charset=utf-8",
            "text/json",
            "application/cloudevents+json",
            "application/Problem+JSON ; a=b",
        ] {
            assert!(parse(text).unwrap().is_json(), "{text}");
        }
        for text in [
            "application/octet-stream",
            "application/jsonp",
            "application/json-seq",
            "application/x-ndjson",
            "image/json",
            "text/plain; a=\"application/json\"",
            "text/plain; a=\"x+json\"",
        ] {
            assert!(!parse(text).unwrap().is_json(), "{text}");
        }
    }

    #[test]
    fn the_default_is_bytes() {
        assert_eq!(parse("application/octet-stream"), Ok(ContentType::default()));
    }

    proptest! {
        #[test]
        fn what_is_accepted_can_stand_in_a_header(value in "[a-z/;=\"\\\\ \t\r\nü,]{0,24}") {
            if let Ok(content_type) = parse(&value) {
                prop_assert_eq!(content_type.as_str(), &value);
                prop_assert!(value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)));
            }
        }
    }
}
