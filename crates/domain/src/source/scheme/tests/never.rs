//! What must never verify, and never panic.

use proptest::prelude::*;

use super::*;
use crate::submission::content::decoded;

/// Signatures of lengths and alphabets that are nobody's.
fn odd_values(right: &str) -> Vec<String> {
    let unpadded = right.trim_end_matches('=').to_owned();
    vec![
        String::new(),
        " ".to_owned(),
        "=".to_owned(),
        "A".repeat(44),
        "sha256=".to_owned(),
        format!("sha256={}", "a".repeat(63)),
        format!("sha256={}", "a".repeat(65)),
        format!("v1,{}", "A".repeat(44)),
        format!("v0={}", "é".repeat(32)),
        format!("t=1,v1={}", "0".repeat(63)),
        right.get(..right.len() - 1).unwrap_or_default().to_owned(),
        if unpadded == right { String::new() } else { unpadded },
        format!("{right}x"),
        format!("é{right}"),
        "a".repeat(crate::source::request::HEADER_READ_MAX + 1),
        "a".repeat(10 * 1024 * 1024),
    ]
}

#[test]
fn a_header_of_another_length_or_alphabet_is_refused_and_brings_nothing_down() {
    for signed in one_of_each() {
        for (name, right) in signed.headers.clone() {
            if name == "Content-Type" {
                continue;
            }
            for value in odd_values(&right) {
                let mut odd = signed.clone();
                odd.header(name).clone_from(&value);
                let value: String = value.chars().take(60).collect();
                assert!(odd.verify().is_err(), "{name}: {value}");
            }
            assert!(signed.without(name).verify().is_err(), "{name} is missing");
            let mut twice = signed.clone();
            twice.headers.push((name, right.clone()));
            assert_eq!(twice.verify().unwrap_err().code(), "header_repeated", "{name}");
        }
    }
}

#[test]
fn hexadecimal_is_read_in_either_letter_case_and_base64_in_its_own_alphabet_alone() {
    let mut upper = known_answers::github();
    let value = upper.header("X-Hub-Signature-256");
    *value = value.to_uppercase().replace("SHA256", "sha256");
    assert_eq!(upper.verify(), Ok(()));
    let url_safe = |text: &str| text.replace('+', "-").replace('/', "_");
    for (mut signed, name) in [
        (known_answers::standard_webhooks(), "webhook-signature"),
        (known_answers::twilio(), "X-Twilio-Signature"),
    ] {
        let value = url_safe(signed.header(name));
        assert_ne!(*signed.header(name), value);
        *signed.header(name) = value;
        assert!(signed.verify().is_err());
    }
}

#[test]
fn more_signatures_than_are_tried_are_refused_and_as_many_are_read() {
    let right = known_answers::stripe();
    let fill = |count: usize| {
        let mut many = right.clone();
        let value = many.header("Stripe-Signature");
        // Time and v1 are two entries.
        value.push_str(&",v0=00".repeat(count - 2));
        many.verify()
    };
    assert_eq!(fill(SIGNATURES_MAX), Ok(()));
    assert_eq!(fill(SIGNATURES_MAX + 1).unwrap_err().code(), "signatures_too_many");
}

#[test]
fn a_signature_under_another_version_proves_nothing() {
    for (mut signed, name, from, to) in [
        (known_answers::stripe(), "Stripe-Signature", "v1=", "v0="),
        (known_answers::paddle(), "Paddle-Signature", "h1=", "h2="),
        (known_answers::slack(), "X-Slack-Signature", "v0=", "v1="),
        (known_answers::svix(), "svix-signature", "v1,", "v2,"),
    ] {
        let value = signed.header(name).replace(from, to);
        *signed.header(name) = value;
        assert_eq!(signed.verify().unwrap_err().code(), "header_malformed");
    }
}

#[test]
fn a_second_time_in_the_header_is_refused() {
    let mut signed = known_answers::stripe();
    signed.header("Stripe-Signature").push_str(",t=1492774577");
    assert_eq!(signed.verify().unwrap_err().code(), "header_malformed");
}

/// A key or a password covers no body.
fn covers_the_body(kind: SchemeKind) -> bool {
    !matches!(kind, SchemeKind::ApiKey | SchemeKind::BasicAuth)
}

/// Twilio signs what a form means, so other bytes of one meaning verify too.
fn meaning(signed: &Signed) -> Vec<u8> {
    let form = signed.scheme.kind() == SchemeKind::Twilio && signed.target.contains("myapp.php");
    if !form {
        return signed.body.clone();
    }
    let mut fields: Vec<(Vec<u8>, Vec<u8>)> = signed
        .body
        .split(|byte| *byte == b'&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let mut halves = pair.splitn(2, |byte| *byte == b'=');
            let mut half = || decoded(halves.next().unwrap_or_default()).into_owned();
            (half(), half())
        })
        .collect();
    fields.sort();
    fields.dedup();
    fields.into_iter().flat_map(|(name, value)| [name, value].concat()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_flipped_bit_of_the_body_never_verifies(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        for signed in one_of_each() {
            let mut flipped = signed.clone();
            let at = at.index(flipped.body.len());
            flipped.body[at] ^= 1_u8 << bit;
            if covers_the_body(signed.scheme.kind()) && meaning(&flipped) != meaning(&signed) {
                prop_assert!(flipped.verify().is_err(), "{:?}", signed.scheme);
            } else {
                prop_assert_eq!(flipped.verify(), Ok(()));
            }
        }
    }

    #[test]
    fn a_longer_or_shorter_body_never_verifies(more in prop::collection::vec(any::<u8>(), 1..9), cut in 1_usize..9) {
        for signed in one_of_each() {
            if !covers_the_body(signed.scheme.kind()) {
                continue;
            }
            let mut longer = signed.clone();
            longer.body.extend(&more);
            prop_assert!(longer.verify().is_err() || meaning(&longer) == meaning(&signed));
            let mut shorter = signed.clone();
            shorter.body.truncate(shorter.body.len().saturating_sub(cut));
            prop_assert!(shorter.verify().is_err());
        }
    }

    #[test]
    fn a_wrong_secret_never_verifies(wrong in "[a-zA-Z0-9]{8,40}", bytes in prop::array::uniform32(any::<u8>())) {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let whsec = format!("whsec_{}", STANDARD.encode(bytes));
        let pair = format!("{wrong}:{wrong}");
        for signed in one_of_each() {
            let secret = match signed.scheme.kind() {
                SchemeKind::StandardWebhooks | SchemeKind::Svix => &whsec,
                SchemeKind::BasicAuth => &pair,
                _ => &wrong,
            };
            prop_assert!(signed.verify_with(&[secret]).is_err());
        }
    }

    #[test]
    fn a_truncated_or_flipped_signature_never_verifies(at in any::<prop::sample::Index>(), bit in 0_u8..7) {
        for signed in one_of_each() {
            let signatures = ["signature", "hmac", "authorization"];
            let mut names = signed.headers.iter().map(|(name, _)| *name);
            let name = names.find(|name| signatures.iter().any(|part| name.to_lowercase().contains(part))).unwrap();
            let mut cut = signed.clone();
            let value = cut.header(name);
            let at = at.index(value.len());
            value.truncate(at);
            prop_assert!(cut.verify().is_err(), "{:?}", signed.scheme);
            let mut flipped = signed.clone();
            let value = flipped.header(name);
            let mut bytes = value.clone().into_bytes();
            bytes[at] ^= 1_u8 << bit;
            let case_alone = bytes.eq_ignore_ascii_case(value.as_bytes());
            *value = String::from_utf8(bytes).unwrap();
            // Hexadecimal, and the name `Basic`, are read in either letter case.
            prop_assert!(case_alone || flipped.verify().is_err(), "{:?}", signed.scheme);
        }
    }

    #[test]
    fn nothing_that_comes_in_brings_a_scheme_down(
        value in prop::collection::vec(any::<u8>(), 0..200),
        target in "\\PC{0,80}",
        body in prop::collection::vec(any::<u8>(), 0..200),
        now in any::<i64>(),
    ) {
        for signed in one_of_each() {
            let secret = SourceSecret::parse(signed.scheme.kind(), signed.secret).unwrap();
            let headers: Vec<(&str, &[u8])> =
                signed.headers.iter().map(|(name, _)| (*name, value.as_slice())).collect();
            let request = InboundRequest { target: &target, headers: &headers, body: &body };
            prop_assert!(signed.scheme.verify(&[secret], &request, now).is_err());
            let _ = signed.scheme.event_type(&request);
            let _ = crate::source::EventId::of(&signed.scheme.event_id_location(), &request);
            let _ = crate::source::challenge::of_post(&signed.scheme, &request);
            let _ = crate::source::challenge::of_get(&signed.scheme, &target);
        }
    }

    #[test]
    fn no_settings_bring_the_reader_down(json in "\\PC{0,200}") {
        let _ = Scheme::from_json(&json);
        let _ = Scheme::from_json(&format!(r#"{{"type":"hmac","header":"x","signed":{json:?}}}"#));
    }
}
