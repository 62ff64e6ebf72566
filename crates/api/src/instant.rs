//! How instants are written.

use serde::{Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

/// An instant in UTC, RFC 3339 with six digits of a second always: it sorts as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instant(pub(crate) OffsetDateTime);

const FORMAT: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let utc = self.0.to_offset(time::UtcOffset::UTC);
        let text = utc.format(FORMAT).map_err(serde::ser::Error::custom)?;
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
