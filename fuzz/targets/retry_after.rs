//! Any lines of `Retry-After`: a wait within its bound, or none.
#![no_main]

use domain::delivery::retry::{RETRY_AFTER_MAX, parse_retry_after, pick_retry_after};
use libfuzzer_sys::fuzz_target;
use time::macros::datetime;

fuzz_target!(|bytes: &[u8]| {
    let now = datetime!(2026-07-31 12:00:00 UTC);
    let lines = bytes.split(|byte| *byte == b'\n');
    for wait in [pick_retry_after(lines, now), parse_retry_after(bytes, now)] {
        assert!(wait.is_none_or(|wait| wait <= RETRY_AFTER_MAX));
    }
});
