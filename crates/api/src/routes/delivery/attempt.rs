//! Attempts, as part of the answer for their delivery.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use store::delivery::AttemptView;
use utoipa::ToSchema;
use utoipa::openapi::schema::ObjectBuilder;

use crate::instant::Instant;
use crate::openapi::schema::{AttemptOutcome, text};

/// An attempt as it is answered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Attempt)]
pub(super) struct AttemptBody {
    number: u32,
    /// Whether its claim was superseded: it is history and had no effect.
    late: bool,
    worker: String,
    started_at: Instant,
    recorded_at: Instant,
    duration_ms: u32,
    #[schema(value_type = AttemptOutcome)]
    outcome: &'static str,
    status: Option<u16>,
    url: String,
    location: Option<String>,
    detail: Option<String>,
    /// None if there was no response.
    response: Option<Excerpt>,
}

/// The start of a response's body.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
struct Excerpt {
    /// How `body` is written: `utf8` as it is, `base64` where it is no text.
    #[schema(schema_with = encodings)]
    encoding: &'static str,
    body: String,
    /// Whether the response had more.
    truncated: bool,
}

fn encodings() -> ObjectBuilder {
    text().enum_values(Some(["utf8", "base64"]))
}

impl From<AttemptView> for AttemptBody {
    fn from(attempt: AttemptView) -> Self {
        let evidence = attempt.evidence;
        let excerpt = || Excerpt::of(&evidence.response, evidence.response_truncated);
        Self {
            number: attempt.number,
            late: attempt.late,
            worker: attempt.worker,
            started_at: Instant(attempt.started_at),
            recorded_at: Instant(attempt.recorded_at),
            duration_ms: attempt.duration_millis,
            outcome: attempt.outcome,
            status: attempt.status,
            response: attempt.status.map(|_| excerpt()),
            url: evidence.url,
            location: evidence.location,
            detail: evidence.detail,
        }
    }
}

impl Excerpt {
    fn of(bytes: &[u8], truncated: bool) -> Self {
        let text = match str::from_utf8(bytes) {
            Ok(text) => Some(text),
            // The cut went through a character: the text ends before it.
            Err(error) if truncated && error.error_len().is_none() => {
                bytes.get(..error.valid_up_to()).and_then(|whole| str::from_utf8(whole).ok())
            }
            Err(_) => None,
        };
        match text {
            Some(text) => Self { encoding: "utf8", body: text.to_owned(), truncated },
            None => Self { encoding: "base64", body: STANDARD.encode(bytes), truncated },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_shown_as_text_where_it_is_text_and_as_base64_elsewhere() {
        for (bytes, truncated, encoding, body) in [
            (&b"ok"[..], false, "utf8", "ok"),
            (b"", false, "utf8", ""),
            ("né".as_bytes(), true, "utf8", "né"),
            (b"n\xc3", true, "utf8", "n"),
            (b"n\xc3", false, "base64", "bsM="),
            (b"\xffn", true, "base64", "/24="),
        ] {
            let expected = Excerpt { encoding, body: body.to_owned(), truncated };
            assert_eq!(Excerpt::of(bytes, truncated), expected, "{bytes:?}");
        }
    }
}
