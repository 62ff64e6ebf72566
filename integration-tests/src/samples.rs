//! Payloads to submit: those of a file that the runner names, else the project's own dozen.

use std::path::PathBuf;
use std::{env, fs};

use anyhow::Context as _;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Names a file of one `{"event_type", "payload"}` object a line.
pub const PAYLOADS_VARIABLE: &str = "FENCEPOST_TEST_PAYLOADS";

const OWN_SAMPLES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/fencepost/samples/webhooks.ndjson");

#[derive(Clone, Debug)]
pub struct Sample {
    pub event_type: String,
    /// Byte for byte what the file says: its key order, spaces, number forms and escapes.
    pub payload: Bytes,
}

#[derive(Deserialize)]
struct Line<'a> {
    event_type: String,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// Every payload of the file that `FENCEPOST_TEST_PAYLOADS` names, or of the project's own.
pub fn payloads() -> anyhow::Result<Vec<Sample>> {
    let path = env::var_os(PAYLOADS_VARIABLE).map_or_else(|| OWN_SAMPLES.into(), PathBuf::from);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let samples = parse(&text).with_context(|| format!("in {}", path.display()))?;
    anyhow::ensure!(!samples.is_empty(), "{} holds no payload", path.display());
    Ok(samples)
}

fn parse(text: &str) -> anyhow::Result<Vec<Sample>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            let Line { event_type, payload } =
                serde_json::from_str(line).with_context(|| format!("line {}", index + 1))?;
            Ok(Sample { event_type, payload: Bytes::copy_from_slice(payload.get().as_bytes()) })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_keeps_the_bytes_of_its_line() {
        let samples =
            parse("{\"event_type\":\"a.b\",\"payload\":{\"z\": 1.0,  \"a\":\"\\u0000\"}}\n\n")
                .unwrap();
        assert_eq!(samples.len(), 1);
        assert_eq!(samples[0].event_type, "a.b");
        assert_eq!(samples[0].payload, r#"{"z": 1.0,  "a":"\u0000"}"#);
    }

    #[test]
    fn a_broken_line_is_named() {
        let error = parse("{\"event_type\":\"a\",\"payload\":1}\n{\n").unwrap_err();
        assert!(format!("{error:#}").contains("line 2"), "{error:#}");
    }

    #[test]
    fn the_projects_own_samples_hold_what_a_rewriting_parser_would_change() {
        let own = parse(&fs::read_to_string(OWN_SAMPLES).unwrap()).unwrap();
        assert!(own.len() >= 12, "{}", own.len());
        let changed = own.iter().filter(|sample| {
            let value: serde_json::Value = serde_json::from_slice(&sample.payload).unwrap();
            serde_json::to_vec(&value).unwrap() != sample.payload
        });
        assert!(changed.count() >= 6);
    }
}
