//! What is submitted.

use std::path::Path;

use anyhow::Context;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The project's own samples, for when no file is given.
const OWN: &str = include_str!("../../samples/webhooks.ndjson");

/// One message. The payload is the text as it stands in the file, byte for byte.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) event_type: String,
    pub(super) payload: Bytes,
}

#[derive(Deserialize)]
struct Line<'a> {
    event_type: String,
    #[serde(borrow)]
    payload: &'a RawValue,
}

pub(super) fn load(file: Option<&Path>) -> anyhow::Result<Vec<Sample>> {
    match file {
        None => parse(OWN).context("the project's own samples"),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            parse(&text).with_context(|| path.display().to_string())
        }
    }
}

fn parse(text: &str) -> anyhow::Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line: Line<'_> = serde_json::from_str(line).with_context(|| {
            format!("line {} is not {{\"event_type\": …, \"payload\": …}}", index + 1)
        })?;
        let payload = Bytes::copy_from_slice(line.payload.get().as_bytes());
        samples.push(Sample { event_type: line.event_type, payload });
    }
    anyhow::ensure!(!samples.is_empty(), "there is no payload in it");
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_keeps_its_bytes() {
        let line = r#"{"event_type":"a.b","payload":{"b" : 1.0, "a":18446744073709551616}}"#;
        let samples = parse(line).unwrap();
        assert_eq!(samples[0].payload, r#"{"b" : 1.0, "a":18446744073709551616}"#);
    }

    #[test]
    fn the_projects_own_samples_can_be_read_and_a_bad_line_is_named() {
        assert!(load(None).unwrap().len() >= 12);
        let error = parse("{\"event_type\":\"a\",\"payload\":1}\n{}").unwrap_err();
        assert!(format!("{error:#}").contains("line 2"), "{error:#}");
        assert!(parse("\n").is_err());
    }
}
