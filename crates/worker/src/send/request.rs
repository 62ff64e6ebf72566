//! The request: the stored bytes, headers that are ours, and those that the endpoint's owner adds.
//!
//! Ours are `content-type` as it was stored, `content-length`, the three headers of Standard Webhooks,
//! and `user-agent`. The client adds `host` and `accept: */*`, and nothing else. No header of the owner
//! takes the place of one of these, also not one that was stored under other rules: reserved names are
//! left out, and ours are set last.

use domain::delivery::Failure;
use domain::endpoint::{HEADERS_MAX, is_reserved};
use domain::signing::{WEBHOOK_ID, WEBHOOK_SIGNATURE, WEBHOOK_TIMESTAMP, signature_header};
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Request, Url};
use store::endpoint::Target;
use store::submission::Payload;
use time::OffsetDateTime;

use super::Unanswered;

/// Builds the request, signed at the instant `at` with every live secret, newest first.
pub(super) fn build(
    url: Url,
    target: &Target,
    payload: &Payload,
    at: OffsetDateTime,
) -> Result<Request, Unanswered> {
    let mut request = Request::new(Method::POST, url);
    *request.headers_mut() = headers(target, payload, at)?;
    *request.body_mut() = Some(payload.payload.clone().into());
    Ok(request)
}

fn headers(
    target: &Target,
    payload: &Payload,
    at: OffsetDateTime,
) -> Result<HeaderMap, Unanswered> {
    let unsendable = |detail: String| Unanswered::new(Failure::Unsendable, detail);
    let secrets = match &target.secrets {
        Ok(secrets) if secrets.is_empty() => {
            return Err(unsendable("the endpoint has no live signing secret".to_owned()));
        }
        Ok(secrets) => secrets,
        Err(why) => return Err(unsendable(format!("a signing secret cannot be used: {why}"))),
    };
    let id = payload.webhook_id.hyphenated().to_string();
    let timestamp = at.unix_timestamp();
    let signature = signature_header(secrets, &id, timestamp, &payload.payload);

    let custom = target.headers.as_ref().map_err(|why| unsendable(why.clone()))?;
    let mut headers = HeaderMap::with_capacity(6 + HEADERS_MAX);
    for (name, value) in custom.expose().filter(|(name, _)| !is_reserved(name)) {
        let header = HeaderName::from_bytes(name.as_bytes()).ok();
        let Some((header, mut value)) = header.zip(HeaderValue::from_str(value).ok()) else {
            return Err(unsendable(format!("the header {name:?} cannot be sent")));
        };
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    let mut set = |name: HeaderName, value: &str| match HeaderValue::from_str(value) {
        Ok(value) => {
            headers.insert(name, value);
            Ok(())
        }
        Err(_) => Err(unsendable(format!("{name} cannot be sent: {value:?}"))),
    };
    set(CONTENT_TYPE, &payload.content_type)?;
    set(HeaderName::from_static(WEBHOOK_ID), &id)?;
    set(HeaderName::from_static(WEBHOOK_TIMESTAMP), &timestamp.to_string())?;
    set(HeaderName::from_static(WEBHOOK_SIGNATURE), &signature)?;
    // Set here because the client leaves it out where the body is empty.
    headers.insert(CONTENT_LENGTH, payload.payload.len().into());
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use domain::endpoint::{CustomHeaders, EndpointSettings};
    use domain::id::{EndpointKey, PublicId, SubmissionId};
    use domain::signing::{Ed25519SecretKey, EndpointSecret, SigningSecret, verify, verify_v1a};
    use uuid::Uuid;

    use super::*;

    fn target(secrets: Result<Vec<EndpointSecret>, String>) -> Target {
        Target {
            endpoint: EndpointKey::from_uuid(Uuid::nil()),
            id: PublicId::parse("orders").unwrap(),
            url: "http://127.0.0.1/".to_owned(),
            settings: EndpointSettings::default(),
            version: 1,
            secrets,
            headers: Ok(CustomHeaders::default()),
        }
    }

    fn payload(content_type: &str, payload: &'static [u8]) -> Payload {
        Payload {
            submission: SubmissionId::from_uuid(Uuid::nil()),
            webhook_id: Uuid::from_u128(7),
            content_type: content_type.to_owned(),
            payload: Bytes::from_static(payload),
        }
    }

    fn secret(fill: u8) -> SigningSecret {
        SigningSecret::from_bytes(vec![fill; 24]).unwrap()
    }

    fn v1(fill: u8) -> EndpointSecret {
        EndpointSecret::V1(secret(fill))
    }

    fn key() -> Ed25519SecretKey {
        Ed25519SecretKey::from_seed(&[3; 32])
    }

    const AT: OffsetDateTime = time::macros::datetime!(2026-07-31 12:00:00.9 UTC);

    #[test]
    fn every_live_secret_signs_the_stored_bytes_at_that_second() {
        let target = target(Ok(vec![v1(2), EndpointSecret::V1a(key()), v1(1)]));
        let payload = payload("application/json; charset=utf-8", b"{\"b\":1, \"a\":2}");
        let headers = headers(&target, &payload, AT).unwrap();
        let text = |name: &str| headers.get(name).unwrap().to_str().unwrap();
        assert_eq!(text("content-type"), "application/json; charset=utf-8");
        assert_eq!(text("content-length"), "14");
        assert_eq!(text("webhook-id"), payload.webhook_id.to_string());
        assert_eq!(text("webhook-timestamp"), AT.unix_timestamp().to_string());
        assert_eq!(headers.len(), 5);
        let signature = text("webhook-signature");
        assert_eq!(signature.split(' ').count(), 3);
        for secret in [secret(1), secret(2)] {
            let verified = verify(
                &[secret],
                text("webhook-id"),
                text("webhook-timestamp"),
                signature,
                &payload.payload,
                AT.unix_timestamp(),
                0,
            );
            assert_eq!(verified, Ok(()));
        }
        let verified = verify_v1a(
            &[key().public_key()],
            text("webhook-id"),
            text("webhook-timestamp"),
            signature,
            &payload.payload,
            AT.unix_timestamp(),
            0,
        );
        assert_eq!(verified, Ok(()));
    }

    #[test]
    fn what_cannot_be_signed_or_written_is_unsendable_and_says_why() {
        let good = || target(Ok(vec![v1(1)]));
        for (target, content_type, word) in [
            (target(Ok(Vec::new())), "text/plain", "no live signing secret"),
            (target(Err("key 7 is not configured".to_owned())), "text/plain", "key 7"),
            (good(), "text/plain\r\nx: y", "content-type"),
        ] {
            let refused = headers(&target, &payload(content_type, b""), AT).unwrap_err();
            assert_eq!(refused.failure, Failure::Unsendable);
            assert!(refused.detail.contains(word), "{}", refused.detail);
        }
    }

    fn stored(headers: &[(&str, &str)]) -> CustomHeaders {
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned().into());
        CustomHeaders::of_stored(headers.iter().map(own).collect())
    }

    /// Case C070.
    #[test]
    fn headers_of_the_owner_are_sent_and_never_take_the_place_of_ours() {
        let old_rules = [
            ("webhook-signature", "v1,AAAA"),
            ("webhook-id", "x"),
            ("content-type", "text/html"),
            ("content-length", "0"),
            ("host", "internal"),
            ("connection", "close, webhook-signature"),
            ("transfer-encoding", "chunked"),
            ("user-agent", "x"),
        ];
        let owns = [("authorization", "Bearer hunter2"), ("x-team", "a b")];
        let plain = headers(&target(Ok(vec![v1(1)])), &payload("a/b", b"1"), AT).unwrap();
        let mut target = target(Ok(vec![v1(1)]));
        target.headers = Ok(stored(&[&old_rules[..], &owns].concat()));
        let mut built = headers(&target, &payload("a/b", b"1"), AT).unwrap();
        assert!(!format!("{built:?}").contains("hunter2"), "{built:?}");
        for (name, value) in owns {
            assert_eq!(built.remove(name).unwrap(), value);
        }
        assert_eq!(built, plain);
    }

    #[test]
    fn headers_that_cannot_be_read_or_written_keep_the_request_back() {
        for (custom, word) in [
            (Err("the headers cannot be unsealed".to_owned()), "unsealed"),
            (Ok(stored(&[("x y", "hunter2")])), "x y"),
            (Ok(stored(&[("x", "hunter2\r\n")])), "\"x\""),
        ] {
            let mut target = target(Ok(vec![v1(1)]));
            target.headers = custom;
            let refused = headers(&target, &payload("a/b", b""), AT).unwrap_err();
            assert_eq!(refused.failure, Failure::Unsendable);
            assert!(refused.detail.contains(word), "{}", refused.detail);
            assert!(!refused.detail.contains("hunter2"), "{}", refused.detail);
        }
    }

    #[test]
    fn an_empty_body_has_its_length_too() {
        let headers = headers(&target(Ok(vec![v1(1)])), &payload("a/b", b""), AT).unwrap();
        assert_eq!(headers.get(CONTENT_LENGTH).unwrap(), "0");
    }
}
