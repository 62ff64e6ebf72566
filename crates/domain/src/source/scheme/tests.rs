//! What each sender documents, and what must never verify.

mod known_answers;
mod never;

use super::*;

/// A request with the secret under which it verifies.
#[derive(Debug, Clone)]
struct Signed {
    scheme: Scheme,
    secret: &'static str,
    now: i64,
    target: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Signed {
    fn verify(&self) -> Result<(), Refusal> {
        self.verify_with(&[self.secret])
    }

    fn verify_with(&self, secrets: &[&str]) -> Result<(), Refusal> {
        let kind = self.scheme.kind();
        let secrets: Vec<SourceSecret> =
            secrets.iter().map(|text| SourceSecret::parse(kind, text).unwrap()).collect();
        let headers: Vec<(&str, &[u8])> =
            self.headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        let request = InboundRequest { target: &self.target, headers: &headers, body: &self.body };
        self.scheme.verify(&secrets, &request, self.now)
    }

    fn header(&mut self, name: &str) -> &mut String {
        let mut found = self.headers.iter_mut().filter(|(other, _)| *other == name);
        &mut found.next().unwrap().1
    }

    fn without(&self, name: &str) -> Self {
        let mut signed = self.clone();
        signed.headers.retain(|(other, _)| *other != name);
        signed
    }
}

fn scheme(json: &str) -> Scheme {
    Scheme::from_json(json).unwrap()
}

fn signed(
    json: &str,
    secret: &'static str,
    now: i64,
    headers: &[(&'static str, &str)],
    body: &[u8],
) -> Signed {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let (scheme, target, body) = (scheme(json), "/in/s".to_owned(), body.to_vec());
    Signed { scheme, secret, now, target, headers, body }
}

/// One request of every scheme, each with its documented or recomputed signature.
fn one_of_each() -> Vec<Signed> {
    vec![
        known_answers::standard_webhooks(),
        known_answers::standard_webhooks_v1a(),
        known_answers::svix(),
        known_answers::github(),
        known_answers::stripe(),
        known_answers::slack(),
        known_answers::shopify(),
        known_answers::twilio(),
        known_answers::twilio_json(),
        known_answers::paddle(),
        known_answers::meta(),
        known_answers::hmac(),
        known_answers::api_key(),
        known_answers::basic_auth(),
    ]
}

#[test]
fn settings_are_read_back_as_they_were_written() {
    for signed in one_of_each() {
        let json = signed.scheme.to_json();
        assert_eq!(scheme(&json), signed.scheme, "{json}");
        assert!(json.starts_with(&format!("{{\"type\":\"{}\"", signed.scheme.kind().as_str())));
    }
}

#[test]
fn settings_that_mean_nothing_are_refused_with_their_name() {
    for (json, named) in [
        (r#"{"type":"gitlab"}"#, "gitlab"),
        (r#"{"type":"github","tolerance":"5m"}"#, "tolerance"),
        (r#"{"type":"shopify","x":1}"#, "x"),
        (r#"{"type":"stripe","tolerance":"25h"}"#, "24h"),
        (r#"{"type":"twilio"}"#, "public_base"),
        (r#"{"type":"twilio","public_base":"https://a.example/path"}"#, "public_base"),
        (r#"{"type":"twilio","public_base":"ftp://a.example"}"#, "public_base"),
        (r#"{"type":"hmac"}"#, "header"),
        (r#"{"type":"hmac","header":"a b"}"#, "token"),
        (r#"{"type":"hmac","header":"x","signed":"{timestamp}"}"#, "{body}"),
        (r#"{"type":"hmac","header":"x","signed":"{body}{body}"}"#, "{body}"),
        (r#"{"type":"hmac","header":"x","signed":"{body}{other}"}"#, "{header:NAME}"),
        (r#"{"type":"hmac","header":"x","signed":"{timestamp}{body}"}"#, "timestamp_header"),
        (r#"{"type":"hmac","header":"x","timestamp_header":"t"}"#, "{timestamp}"),
        (r#"{"type":"hmac","header":"x","algorithm":"md5"}"#, "md5"),
        (r#"{"type":"meta","verify_token":"short"}"#, "verify_token"),
        (r#"{"tolerance":"5m"}"#, "type"),
        ("[]", ""),
        ("", ""),
    ] {
        let error = Scheme::from_json(json).unwrap_err().to_string();
        assert!(error.contains(named), "{json}: {error}");
        assert!(!error.contains(" line "), "{error}");
    }
    assert!(Scheme::from_json(&format!("{{{}}}", " ".repeat(SETTINGS_BYTES_MAX))).is_err());
}

#[test]
fn every_scheme_has_its_name_and_its_place_of_the_event_id() {
    let mut kinds: Vec<SchemeKind> =
        one_of_each().iter().map(|signed| signed.scheme.kind()).collect();
    kinds.dedup();
    assert_eq!(kinds, SchemeKind::ALL);
    let location = |json: &str| scheme(json).event_id_location();
    assert_eq!(location(r#"{"type":"github"}"#), EventIdLocation::header("x-github-delivery"));
    assert_eq!(location(r#"{"type":"stripe"}"#), EventIdLocation::pointer("/id"));
    assert_eq!(location(r#"{"type":"api_key","header":"x"}"#), EventIdLocation::Digest);
}
