//! Bytes as lower-case hexadecimal digits.

use std::fmt::Write;

pub(crate) fn encode<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
