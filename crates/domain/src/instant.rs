//! How instants are written.

use time::error::Format;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

const FORMAT: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");

/// An instant in UTC, RFC 3339 with six digits of a second always: it sorts as text.
///
/// # Errors
/// Its year has more than four digits, which has no such form.
pub fn render(instant: OffsetDateTime) -> Result<String, Format> {
    instant.to_offset(UtcOffset::UTC).format(FORMAT)
}
