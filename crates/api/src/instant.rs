//! How instants are written.

use serde::{Serialize, Serializer};
use time::OffsetDateTime;

/// An instant as [`domain::instant`] writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instant(pub(crate) OffsetDateTime);

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = domain::instant::render(self.0).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn an_instant_is_utc_with_six_digits_whatever_its_value() {
        for (instant, text) in [
            (datetime!(2026-01-02 03:04:05 UTC), "2026-01-02T03:04:05.000000Z"),
            (datetime!(2026-01-02 03:04:05.1234569 UTC), "2026-01-02T03:04:05.123456Z"),
            (datetime!(2026-01-02 03:04:05.5 +02:00), "2026-01-02T01:04:05.500000Z"),
        ] {
            assert_eq!(serde_json::json!(Instant(instant)), text);
        }
    }
}
