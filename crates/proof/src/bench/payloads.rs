//! What is submitted.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use serde_json::value::RawValue;

/// Payloads, in turn.
#[derive(Debug, Clone)]
pub struct Payloads(Arc<[Bytes]>);

/// What stands around the filling of a payload.
const FRAME: &str = r#"{"fill":""}"#;

#[derive(serde::Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    payload: &'a RawValue,
}

impl Payloads {
    /// One JSON object of so many bytes, or the shortest there is.
    #[must_use]
    pub fn of_bytes(bytes: usize) -> Self {
        let fill = "x".repeat(bytes.saturating_sub(FRAME.len()));
        Self(Arc::new([Bytes::from(format!(r#"{{"fill":"{fill}"}}"#))]))
    }

    /// Those of a file with a `{"payload": …}` in each line.
    ///
    /// # Errors
    /// It cannot be read, a line is not that, or there is none.
    pub fn of_file(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let payloads = text.lines().enumerate().map(|(place, line)| {
            let line: Line<'_> = serde_json::from_str(line)
                .with_context(|| format!("line {} of {}", place + 1, path.display()))?;
            Ok(Bytes::copy_from_slice(line.payload.get().as_bytes()))
        });
        let payloads = payloads.collect::<anyhow::Result<Vec<_>>>()?;
        if payloads.is_empty() {
            bail!("{} has no line", path.display());
        }
        Ok(Self(payloads.into()))
    }

    /// The payload of the submission with this number.
    pub(super) fn of(&self, number: u64) -> Bytes {
        let count = u64::try_from(self.0.len()).unwrap_or(1).max(1);
        let place = usize::try_from(number % count).unwrap_or(0);
        self.0.get(place).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_has_the_bytes_that_were_asked_for_and_is_json() {
        for bytes in [11, 12, 1_024] {
            let payload = Payloads::of_bytes(bytes).of(7);
            assert_eq!(payload.len(), bytes);
            serde_json::from_slice::<serde_json::Value>(&payload).unwrap();
        }
        assert_eq!(Payloads::of_bytes(0).of(0).len(), 11);
    }
}
