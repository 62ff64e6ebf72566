//! Durations as people write them: a whole number and one unit, exact to the millisecond.
//!
//! `100ms`, `15s`, `5m`, `2h`, `7d`. There are no fractions and no sums: each duration has one
//! canonical text, in the largest unit that it is a whole number of.

use std::time::Duration;

/// The units with their milliseconds, the largest first.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The longest duration that can be written: 3,650 days. What a duration is for sets its own limit.
pub const WRITTEN_MAX: Duration = Duration::from_hours(24 * 3_650);

/// The text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error(
    "a duration is a whole number with one of the units `ms`, `s`, `m`, `h` and `d`, such as \
     `15s`, and at most 3650d"
)]
pub struct DurationError;

/// Reads a duration.
///
/// # Errors
/// [`DurationError`], which names the form.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, unit) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or(DurationError)?;
    let number: u64 = number.parse().map_err(|_| DurationError)?;
    let duration = number.checked_mul(unit).map(Duration::from_millis).ok_or(DurationError)?;
    if duration > WRITTEN_MAX { Err(DurationError) } else { Ok(duration) }
}

/// The canonical text of a duration, whose fraction of a millisecond is left out.
#[must_use]
pub fn render(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis == 0 {
        return "0s".to_owned();
    }
    let fits = |(_, unit): &(&str, u64)| millis.is_multiple_of(u128::from(*unit));
    let (name, unit) = UNITS.into_iter().find(fits).unwrap_or(("ms", 1));
    format!("{}{name}", millis / u128::from(unit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_duration_is_a_whole_number_and_a_unit() {
        for (text, millis, canonical) in [
            ("100ms", 100, "100ms"),
            ("1500ms", 1_500, "1500ms"),
            ("15s", 15_000, "15s"),
            ("60s", 60_000, "1m"),
            ("90m", 5_400_000, "90m"),
            ("24h", 86_400_000, "1d"),
            ("007d", 604_800_000, "7d"),
            ("0ms", 0, "0s"),
            ("0d", 0, "0s"),
            ("3650d", 315_360_000_000, "3650d"),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
            assert_eq!(render(Duration::from_millis(millis)), canonical);
        }
        for text in [
            "",
            "s",
            "15",
            "15 s",
            " 15s",
            "15s ",
            "1.5s",
            "-1s",
            "+1s",
            "1h30m",
            "15S",
            "1us",
            "1w",
            "3651d",
            "18446744073709551616ms",
            "999999999999999999d",
            "1e3s",
            "\u{661}s",
        ] {
            assert_eq!(parse(text), Err(DurationError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_rendered_duration_reads_back_to_the_millisecond(millis in 0..=315_360_000_000_u64) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse(&render(duration)), Ok(duration));
        }
    }
}
