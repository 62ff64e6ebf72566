//! Any text as a cursor: what is taken is written as it was read, and goes on with its own list alone.
#![no_main]

use domain::cursor::{Binding, Cursor};
use domain::id::ApplicationKey;
use libfuzzer_sys::fuzz_target;
use uuid::Uuid;

fuzz_target!(|text: &str| {
    let application = ApplicationKey::from_uuid(Uuid::nil());
    let mut parts = text.split('\n');
    let binding = Binding::of(parts.next().unwrap_or_default(), application, &[]);
    for part in parts {
        let Ok(cursor) = Cursor::parse(part) else { continue };
        assert_eq!(cursor.to_text(), part);
        if let Some(last) = cursor.last(binding) {
            assert_eq!(Cursor::new(binding, last), cursor);
        }
    }
});
