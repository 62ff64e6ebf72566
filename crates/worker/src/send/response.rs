//! The response: its head decides, its body is evidence.

use bytes::{Bytes, BytesMut};
use domain::delivery::Outcome;
use domain::delivery::retry::pick_retry_after;
use reqwest::Response;
use reqwest::header::{HeaderValue, LOCATION, RETRY_AFTER};
use store::delivery::{Evidence, RESPONSE_BYTES_KEPT};
use time::OffsetDateTime;
use tokio::time::{Instant, timeout_at};

use super::failure;

/// How much of a body is read, so that its connection can serve again. A longer one is cut off.
const BYTES_READ_MAX: usize = 64 * 1024;

/// What the head says. `now` is what a date in `Retry-After` is compared with.
pub(super) fn outcome(response: &Response, now: OffsetDateTime) -> Outcome {
    let lines = response.headers().get_all(RETRY_AFTER);
    Outcome::Answered {
        status: response.status().as_u16(),
        retry_after: pick_retry_after(lines.iter().map(HeaderValue::as_bytes), now),
    }
}

/// Where a redirect points. It is recorded and never followed.
pub(super) fn location(response: &Response) -> Option<String> {
    let location = response.headers().get(LOCATION)?;
    let is_redirect = response.status().is_redirection();
    is_redirect.then(|| String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// Reads the body into the evidence, up to its bound and until the deadline.
pub(super) async fn read_body(mut response: Response, ends_at: Instant, evidence: &mut Evidence) {
    let mut kept = BytesMut::new();
    let mut read = 0_usize;
    loop {
        let chunk = match timeout_at(ends_at, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => break,
            Ok(Err(error)) => {
                let causes = failure::causes_of(&error);
                evidence.detail = Some(format!("the response body broke off: {causes}"));
                evidence.response_truncated = true;
                break;
            }
            Err(_) => {
                evidence.detail =
                    Some("the response body had not ended at the deadline".to_owned());
                evidence.response_truncated = true;
                break;
            }
        };
        read = read.saturating_add(chunk.len());
        let room = RESPONSE_BYTES_KEPT.saturating_sub(kept.len());
        kept.extend_from_slice(&chunk.slice(..chunk.len().min(room)));
        evidence.response_truncated |= chunk.len() > room;
        if read > BYTES_READ_MAX {
            break;
        }
    }
    evidence.response = Bytes::from(kept);
}
