//! Durations as people write them.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Reads a duration, as `15s`, within these limits.
///
/// # Errors
/// It is no duration, or outside the limits; the message names them.
pub fn parse_duration(text: &str, limits: RangeInclusive<Duration>) -> Result<Duration, String> {
    let duration = domain::duration::parse(text).map_err(|error| error.to_string())?;
    if limits.contains(&duration) {
        return Ok(duration);
    }
    let [from, to] = [limits.start(), limits.end()].map(|it| domain::duration::render(*it));
    Err(format!("must be between {from} and {to}"))
}
