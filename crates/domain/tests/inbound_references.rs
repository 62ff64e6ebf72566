//! Requests that the senders' own libraries signed, and what differs from them in one place.
//!
//! `inbound_references.py` wrote the lines; `just inbound-references` writes them anew.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::source::{InboundRequest, Scheme, SourceSecret};
use serde::Deserialize;
use serde_json::value::RawValue;

const LINES: &str = include_str!("inbound_references.ndjson");

#[derive(Deserialize)]
struct Line {
    by: String,
    scheme: Box<RawValue>,
    secret: String,
    now: i64,
    target: String,
    headers: Vec<(String, String)>,
    body: String,
}

#[expect(clippy::expect_used, reason = "a test")]
impl Line {
    fn scheme(&self) -> Scheme {
        Scheme::from_json(self.scheme.get()).expect("the settings of the line")
    }

    fn verify(&self, secret: &str, target: &str, body: &[u8]) -> bool {
        let scheme = self.scheme();
        let secret = SourceSecret::parse(scheme.kind(), secret).expect("a secret of the scheme");
        let headers: Vec<(&str, &[u8])> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let request = InboundRequest { target, headers: &headers, body };
        scheme.verify(&[secret], &request, self.now).is_ok()
    }
}

#[test]
fn what_the_senders_libraries_sign_verifies_and_nothing_near_it_does() {
    let mut libraries = Vec::new();
    for (number, line) in LINES.lines().enumerate() {
        let line: Line = serde_json::from_str(line).unwrap();
        let body = STANDARD.decode(&line.body).unwrap();
        let told = format!("line {}, by {}, {}", number + 1, line.by, line.scheme);
        assert!(line.verify(&line.secret, &line.target, &body), "{told}");
        let longer = [body.as_slice(), b"1"].concat();
        assert!(!line.verify(&line.secret, &line.target, &longer), "{told}");
        let scheme = line.scheme();
        let other = if line.secret.starts_with("whsec_") && line.by != "stripe" {
            "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
        } else {
            "another"
        };
        assert!(!line.verify(other, &line.target, &body), "{told}");
        if line.by == "twilio" {
            assert!(!line.verify(&line.secret, &format!("{}x", line.target), &body), "{told}");
        }
        libraries.push(format!("{} {}", line.by, scheme.kind().as_str()));
    }
    libraries.sort();
    libraries.dedup();
    let expected = [
        "hmac github",
        "hmac hmac",
        "hmac paddle",
        "hmac shopify",
        "hmac slack",
        "standardwebhooks standard_webhooks",
        "stripe stripe",
        "svix svix",
        "twilio twilio",
    ];
    assert_eq!(libraries, expected);
}
