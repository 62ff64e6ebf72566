//! Sizes as people write them.

/// Reads a number of bytes: `262144`, `256KiB`, `4MiB`, `1GiB`, within these limits.
///
/// # Errors
/// It is no size, or outside the limits; the message names them.
pub fn parse_size(text: &str, limits: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text.get(digits.len()..).unwrap_or_default() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        unit => return Err(format!("{unit:?} is none of B, KiB, MiB and GiB")),
    };
    let count: u64 = digits.trim().parse().map_err(|_| "is not a number with a unit".to_owned())?;
    match count.checked_mul(unit) {
        Some(bytes) if limits.contains(&bytes) => Ok(bytes),
        _ => Err(format!("must be between {} and {} bytes", limits.start(), limits.end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_with_or_without_a_unit_and_within_its_limits() {
        let limits = 1..=1 << 20;
        for (text, bytes) in [("1", 1), ("7B", 7), ("256KiB", 262_144), ("1 MiB", 1 << 20)] {
            assert_eq!(parse_size(text, limits.clone()), Ok(bytes), "{text}");
        }
        for bad in ["", "0", "-1", "1kb", "2MiB", "KiB", "99999999999999999999GiB"] {
            assert!(parse_size(bad, limits.clone()).is_err(), "{bad}");
        }
    }
}
