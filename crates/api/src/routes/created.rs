//! Lists narrowed to a time: `created_after` and `created_before`.

use store::CreatedWindow;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::fields::{Fault, Fields};
use crate::openapi::Doc;
use crate::openapi::schema::date_time;

/// Takes both from the query of a list: at `created_after` or later, earlier than `created_before`.
pub(super) fn take_created(fields: &mut Fields) -> CreatedWindow {
    let after = fields.optional("created_after", parse);
    let before = fields.optional("created_before", parse);
    CreatedWindow::of(after, before)
}

/// Both as they stand in the description of a list.
pub(super) fn describe_created(doc: Doc) -> Doc {
    let after = "Only those made then or later. What a transaction submits appears when that commits, at the time it \
                 was made: who follows the list asks from before the newest seen, by as long as transactions may \
                 take, and knows what it has by id.";
    doc.query("created_after", after, date_time()).query(
        "created_before",
        "Only those made earlier than then.",
        date_time(),
    )
}

/// A bound as it goes into a cursor.
pub(super) fn written(bound: Option<Uuid>) -> Option<String> {
    bound.map(|bound| bound.to_string())
}

struct InstantMalformed;

impl Fault for InstantMalformed {
    fn code(&self) -> &'static str {
        "instant_malformed"
    }

    fn message(&self) -> String {
        "must be an instant with its offset as in RFC 3339, such as `2026-01-02T03:04:05Z`; in a \
         query `+` is written `%2B`"
            .to_owned()
    }
}

fn parse(text: &str) -> Result<OffsetDateTime, InstantMalformed> {
    OffsetDateTime::parse(text, &Rfc3339).map_err(|_| InstantMalformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case C100.
    #[test]
    fn an_instant_is_the_same_whatever_its_offset() {
        let at = |text: &str| parse(text).ok().map(OffsetDateTime::unix_timestamp);
        assert_eq!(at("2026-01-01T00:00:00Z"), at("2026-01-01T05:30:00+05:30"));
        assert_eq!(at("2026-01-01T00:00:00.5Z"), Some(1_767_225_600));
        for text in
            ["", "2026-01-01", "2026-01-01T00:00:00", "1767225600", "2026-01-01T05:30:00 05:30"]
        {
            assert!(at(text).is_none(), "{text}");
        }
    }
}
