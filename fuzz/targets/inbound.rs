//! Any settings of a source, its secret, a target, headers, and a body: answered, and never verified.
//!
//! The first lines are settings as JSON, secret, target and `name: value` up to an empty one; the rest is the
//! body.
#![no_main]

use domain::source::{EventId, InboundRequest, Scheme, SourceSecret};
use domain::source::{SchemeKind, challenge};
use libfuzzer_sys::fuzz_target;

const NOW: i64 = 1_700_000_000;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    let mut line = || {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        line
    };
    let text = |bytes| str::from_utf8(bytes).unwrap_or_default();
    let (settings, secret, target) = (text(line()), text(line()), text(line()));
    let mut headers: Vec<(&str, &[u8])> = Vec::new();
    loop {
        let header = line();
        if header.is_empty() || headers.len() == 32 {
            break;
        }
        let colon = header.iter().position(|byte| *byte == b':').unwrap_or(header.len());
        let (name, value) = header.split_at(colon);
        headers.push((text(name), value.get(1..).unwrap_or_default().trim_ascii()));
    }
    let Ok(scheme) = Scheme::from_json(settings) else { return };
    assert_eq!(Scheme::from_json(&scheme.to_json()).as_ref(), Ok(&scheme));
    let request = InboundRequest { target, headers: &headers, body: rest };
    let _ = challenge::of_post(&scheme, &request);
    let _ = challenge::of_get(&scheme, target);
    let _ = scheme.event_type(&request);
    let _ = scheme.signed_at(&request);
    let _ = EventId::of(&scheme.event_id_location(), &request);
    for (index, secret) in [UNKNOWN_TO_ALL, secret].into_iter().enumerate() {
        let Ok(secret) = SourceSecret::parse(scheme.kind(), secret) else { continue };
        let verified = scheme.verify(&[secret], &request, NOW);
        // The first is one that no input can know the signature of, unless it is sent along as it is.
        let is_sent = matches!(scheme.kind(), SchemeKind::ApiKey | SchemeKind::BasicAuth);
        assert!(index > 0 || is_sent || verified.is_err());
    }
});

const UNKNOWN_TO_ALL: &str = "whsec_q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
