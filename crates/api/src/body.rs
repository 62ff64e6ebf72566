//! Bodies: read whole, within a limit of bytes and of time, and never changed.
//!
//! A body whose declared length is over the limit is refused before a byte of it is read, one without
//! a declared length as soon as it passes the limit. How the connection ends then is the matter of
//! [`crate::unread_body`].

use std::time::Duration;

use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use actix_web::web::{Bytes, Payload};
use actix_web::{HttpMessage, HttpRequest};

use crate::fields::Fields;
use crate::problem::{Code, Extension, Problem};

/// What a body may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimit {
    /// The most bytes.
    pub(crate) bytes: usize,
    /// How long it may take to arrive.
    pub(crate) deadline: Duration,
}

/// Reads the body of a request.
pub(crate) async fn read(
    request: &HttpRequest,
    payload: Payload,
    limit: BodyLimit,
) -> Result<Bytes, Problem> {
    check_head(request, limit)?;
    let reading = payload.to_bytes_limited(limit.bytes);
    match tokio::time::timeout(limit.deadline, reading).await {
        Ok(Ok(Ok(body))) => Ok(body),
        Ok(Ok(Err(error))) => Err(Problem::new(Code::BodyIncomplete).caused_by(error.to_string())),
        Ok(Err(_exceeded)) => Err(too_large(limit)),
        Err(_elapsed) => Err(Problem::new(Code::BodyTooSlow)),
    }
}

/// Refuses a body by what the head tells of it.
pub(crate) fn check_head(request: &HttpRequest, limit: BodyLimit) -> Result<(), Problem> {
    if declared_length(request).is_some_and(|bytes| bytes > limit.bytes) {
        return Err(too_large(limit));
    }
    refuse_encoded(request)
}

/// How many bytes the body has, where the head tells.
pub(crate) fn declared_length(request: &HttpRequest) -> Option<usize> {
    request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads the body of a request that must declare it as `application/json`.
pub(crate) async fn read_json(
    request: &HttpRequest,
    payload: Payload,
    limit: BodyLimit,
) -> Result<Bytes, Problem> {
    if !is_declared_json(request) {
        return Err(Problem::new(Code::ContentTypeUnsupported));
    }
    read(request, payload, limit).await
}

/// Reads the body of a request that need not have one. With one, it must be declared as
/// `application/json`.
pub(crate) async fn read_optional_json(
    request: &HttpRequest,
    payload: Payload,
    limit: BodyLimit,
) -> Result<Option<Bytes>, Problem> {
    let body = read(request, payload, limit).await?;
    if body.is_empty() {
        return Ok(None);
    }
    if is_declared_json(request) {
        Ok(Some(body))
    } else {
        Err(Problem::new(Code::ContentTypeUnsupported))
    }
}

/// Reads the body of a request that asks for nothing in it: none, or an object without members.
pub(crate) async fn read_no_fields(
    request: &HttpRequest,
    payload: Payload,
    limit: BodyLimit,
) -> Result<(), Problem> {
    match read_optional_json(request, payload, limit).await? {
        None => Ok(()),
        Some(body) => Fields::of_body(&body)?.finish(Some(())),
    }
}

fn is_declared_json(request: &HttpRequest) -> bool {
    request.headers().get_all(CONTENT_TYPE).count() == 1
        && request.content_type().eq_ignore_ascii_case("application/json")
}

/// The body is over its limit.
pub(crate) fn too_large(limit: BodyLimit) -> Problem {
    let limit_bytes = limit.bytes;
    Problem::new(Code::BodyTooLarge)
        .detail(format!("the body has more than {limit_bytes} bytes"))
        .extended(Extension::Limit { limit_bytes })
}

/// The bytes are stored and delivered without the header, so their receiver could not decode them.
fn refuse_encoded(request: &HttpRequest) -> Result<(), Problem> {
    let identity = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if request.headers().get_all(CONTENT_ENCODING).all(identity) {
        Ok(())
    } else {
        Err(Problem::new(Code::ContentEncodingUnsupported))
    }
}
