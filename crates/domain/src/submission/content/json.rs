//! Whether a payload that is declared to be JSON is JSON.

use serde::de::IgnoredAny;

use super::ContentType;

/// The most levels that arrays and objects of a JSON payload may be nested: 128.
///
/// RFC 8259 section 9 lets a parser set such a limit. Deeper nesting serves no payload, and it is
/// what brings down receivers whose parser recurses.
pub const JSON_NESTING_MAX: usize = 128;

/// Why a payload is not acceptable JSON, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{message} at line {line} column {column}")]
pub struct JsonError {
    /// The line, counted from 1.
    pub line: usize,
    /// The byte of the line at which reading stopped, counted from 1; 0 before the first.
    pub column: usize,
    /// What is wrong there. It holds no part of the payload.
    pub message: String,
}

/// Checks the payload if its content type declares JSON; anything else passes unread.
///
/// The grammar is RFC 8259: UTF-8 without a byte order mark, one value, at most
/// [`JSON_NESTING_MAX`] levels. Numbers of any size and precision pass, and so do escapes of lone
/// surrogates and repeated names, since no value is built from them. An empty payload is no JSON.
///
/// # Errors
/// [`JsonError`] for the first thing that is wrong.
pub fn declared_json_parses(content_type: &ContentType, payload: &[u8]) -> Result<(), JsonError> {
    if !content_type.is_json() {
        return Ok(());
    }
    let text = str::from_utf8(payload)
        .map_err(|error| located("invalid UTF-8", payload, error.valid_up_to()))?;
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| syntax_error(&error))?;
    match first_too_deep(text) {
        None => Ok(()),
        Some(offset) => {
            let message = format!("nested more than {JSON_NESTING_MAX} levels deep");
            Err(located(&message, payload, offset))
        }
    }
}

fn syntax_error(error: &serde_json::Error) -> JsonError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let message = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    JsonError { line, column, message: message.to_owned() }
}

/// Where the nesting limit is passed, in a text that is known to be JSON.
///
/// `serde_json` skips values without recursion, and so without its own limit of the depth.
fn first_too_deep(json: &str) -> Option<usize> {
    let mut depth = 0;
    let mut in_string = false;
    let mut escaped = false;
    for (offset, byte) in json.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' if depth == JSON_NESTING_MAX => return Some(offset),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn located(message: &str, payload: &[u8], offset: usize) -> JsonError {
    let before = payload.split_at_checked(offset).map_or(payload, |(before, _)| before);
    let mut lines = before.rsplit(|byte| *byte == b'\n');
    let column = lines.next().map_or(0, <[u8]>::len) + 1;
    JsonError { line: lines.count() + 1, column, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(payload: impl AsRef<[u8]>) -> Result<(), JsonError> {
        let json = ContentType::parse(b"application/json").unwrap();
        declared_json_parses(&json, payload.as_ref())
    }

    fn error(line: usize, column: usize, message: &str) -> JsonError {
        JsonError { line, column, message: message.to_owned() }
    }

    /// Cases C013, C017 and C018.
    #[test]
    fn every_json_text_passes_whatever_a_parser_would_make_of_it() {
        for payload in [
            "null",
            " {} \r\n",
            r#"{"u64":18446744073709551615,"i":123456789012345678901234567890}"#,
            r#"{"f":9007199254740991.0,"g":117.63331139400017}"#,
            "[1e400,-1e-400,1E+9999,-0]",
            &"9".repeat(10_000),
            "{\"t\":\"ñ 😊 \u{2028}\"}",
            r#"{"t":"\u00f1 \ud83d\ude0a \u2028"}"#,
            r#"["\ud800","\udc00\ud800"]"#,
            r#"{"inner":"{\"x\":\"\\u0000\"}","p":"C:\\u0000dir","x":"\\\u0000"}"#,
            r#"{"a":1,"a":2,"":0}"#,
        ] {
            assert_eq!(check(payload), Ok(()), "{payload}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        for (payload, refused) in [
            ("", error(1, 0, "EOF while parsing a value")),
            (" ", error(1, 1, "EOF while parsing a value")),
            ("{\"a\":\n1,}", error(2, 3, "key must be a string")),
            ("{} {}", error(1, 4, "trailing characters")),
            ("{'a':1}", error(1, 2, "key must be a string")),
            ("NaN", error(1, 1, "expected value")),
            ("[01]", error(1, 3, "invalid number")),
            ("\u{feff}{}", error(1, 1, "expected value")),
        ] {
            assert_eq!(check(payload), Err(refused), "{payload:?}");
        }
        for payload in [r#""\x""#, r#""\u12""#, "\"\n\"", "[1,", "{\"a\"}", "+1", ".5", "1.", "tru"]
        {
            assert!(check(payload).is_err(), "{payload}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused_with_their_place() {
        assert_eq!(check(b"[\n  \"caf\xE9\"]"), Err(error(2, 7, "invalid UTF-8")));
        assert_eq!(check(b"\xFF"), Err(error(1, 1, "invalid UTF-8")));
        assert_eq!(check(b"\"\xED\xA0\x80\"").map_err(|refused| refused.column), Err(2));
    }

    #[test]
    fn the_nesting_limit_is_128_levels() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(check(nested(128)), Ok(()));
        let too_deep = error(1, 129, "nested more than 128 levels deep");
        assert_eq!(check(nested(129)), Err(too_deep.clone()));
        assert_eq!(check(nested(100_000)), Err(too_deep));
        let objects = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        assert_eq!(check(objects).map_err(|refused| refused.column), Err(641));
        assert!(check("[".repeat(100_000)).is_err());
    }

    #[test]
    fn brackets_in_strings_and_side_by_side_are_not_nesting() {
        let quoted = format!(r#"["\"{}\\", "{}"]"#, "[".repeat(1000), "{".repeat(1000));
        assert_eq!(check(quoted), Ok(()));
        assert_eq!(check(format!("[{}{{}}]", "[],".repeat(1000))), Ok(()));
    }

    #[test]
    fn the_message_reads_as_a_sentence_and_quotes_nothing() {
        let shown = check(r#"{"password":"hunter2" "x"}"#).unwrap_err().to_string();
        assert_eq!(shown, "expected `,` or `}` at line 1 column 23");
    }

    #[test]
    fn what_is_not_declared_json_passes_unread() {
        for content_type in ["application/octet-stream", "text/plain", "application/jsonp"] {
            let content_type = ContentType::parse(content_type.as_bytes()).unwrap();
            assert_eq!(declared_json_parses(&content_type, b"\xFF{"), Ok(()));
        }
        let suffixed = ContentType::parse(b"application/problem+json").unwrap();
        assert!(declared_json_parses(&suffixed, b"{").is_err());
    }
}
