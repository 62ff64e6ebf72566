//! Cursors: where a list goes on, opaque to its reader.
//!
//! A cursor is the last id that was answered and a digest of what the list was filtered by, so that it
//! cannot go on with another list by mistake. It grants nothing: whoever makes one up sees what their
//! key shows them anyway.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::id::ApplicationKey;

/// The form of the cursors that are made here. Another form gets another number.
const VERSION: u8 = 1;
const BINDING_BYTES: usize = 8;
const CURSOR_BYTES: usize = 1 + BINDING_BYTES + 16;

/// How long every cursor is, in characters: base64 without padding.
pub const CURSOR_CHARACTERS: usize = (CURSOR_BYTES * 8).div_ceil(6);

/// What a list is filtered by, in few bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding([u8; BINDING_BYTES]);

/// A place in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    binding: Binding,
    last: Uuid,
}

/// The text is no cursor that was made here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor that was answered here")]
pub struct CursorMalformed;

impl Binding {
    /// The binding of a list of an application, narrowed by these values in this order.
    #[must_use]
    pub fn of(list: &str, application: ApplicationKey, filter: &[Option<String>]) -> Self {
        let mut digest = Sha256::new();
        // Each part with its length before it, so that no two lists of parts run together.
        let mut part = |bytes: Option<&[u8]>| {
            digest.update(bytes.map_or(u64::MAX, |bytes| bytes.len() as u64).to_be_bytes());
            digest.update(bytes.unwrap_or_default());
        };
        part(Some(list.as_bytes()));
        part(Some(application.as_uuid().as_bytes()));
        for value in filter {
            part(value.as_ref().map(String::as_bytes));
        }
        let mut binding = [0; BINDING_BYTES];
        for (kept, byte) in binding.iter_mut().zip(digest.finalize()) {
            *kept = byte;
        }
        Self(binding)
    }
}

impl Cursor {
    /// The place behind this id in the list with that binding.
    #[must_use]
    pub fn new(binding: Binding, last: Uuid) -> Self {
        Self { binding, last }
    }

    /// Reads a cursor.
    ///
    /// # Errors
    /// [`CursorMalformed`] if the text is none.
    pub fn parse(text: &str) -> Result<Self, CursorMalformed> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| CursorMalformed)?;
        let bytes: [u8; CURSOR_BYTES] = bytes.try_into().map_err(|_| CursorMalformed)?;
        let [VERSION, rest @ ..] = &bytes else { return Err(CursorMalformed) };
        let (binding, last) = rest.split_first_chunk::<BINDING_BYTES>().ok_or(CursorMalformed)?;
        let last = Uuid::from_slice(last).map_err(|_| CursorMalformed)?;
        Ok(Self { binding: Binding(*binding), last })
    }

    /// The cursor as it is answered, [`CURSOR_CHARACTERS`] long.
    #[must_use]
    pub fn to_text(self) -> String {
        let bytes = [&[VERSION], self.binding.0.as_slice(), self.last.as_bytes().as_slice()];
        URL_SAFE_NO_PAD.encode(bytes.concat())
    }

    /// The last id that was answered, if the cursor is of that list.
    #[must_use]
    pub fn last(self, binding: Binding) -> Option<Uuid> {
        (self.binding == binding).then_some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(list: &str, filter: &[Option<&str>]) -> Binding {
        let filter: Vec<_> = filter.iter().map(|it| it.map(str::to_owned)).collect();
        Binding::of(list, ApplicationKey::from_uuid(Uuid::nil()), &filter)
    }

    #[test]
    fn a_cursor_goes_on_with_its_own_list_and_no_other() {
        let bound = binding("deliveries", &[None, Some("failed")]);
        let cursor = Cursor::new(bound, Uuid::from_u128(7));
        let read = Cursor::parse(&cursor.to_text()).unwrap();
        assert_eq!(read.last(bound), Some(Uuid::from_u128(7)));
        for (list, filter) in [
            ("submissions", [None, Some("failed")]),
            ("deliveries", [Some("failed"), None]),
            ("deliveries", [None, Some("pending")]),
            ("deliveries", [None, None]),
            ("deliveries", [Some(""), Some("failed")]),
        ] {
            assert_eq!(read.last(binding(list, &filter)), None, "{list} {filter:?}");
        }
        let other = ApplicationKey::from_uuid(Uuid::max());
        let filter = [None, Some("failed".to_owned())];
        assert_eq!(read.last(Binding::of("deliveries", other, &filter)), None);
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        let text = Cursor::new(binding("x", &[]), Uuid::nil()).to_text();
        let newer = URL_SAFE_NO_PAD.encode([2; CURSOR_BYTES]);
        for text in ["", "AQ", &text[1..], &format!("{text}AAAA"), &format!("{text}="), &newer, "%"]
        {
            assert_eq!(Cursor::parse(text), Err(CursorMalformed), "{text}");
        }
    }
}
