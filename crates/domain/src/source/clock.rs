//! How far the time that was signed may lie from now.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Refusal;
use crate::duration::{self, DurationError};

/// The tolerance when nobody says: what Standard Webhooks, Stripe and Slack recommend.
const TOLERANCE_DEFAULT: Duration = Duration::from_mins(5);

/// The longest tolerance.
pub const TOLERANCE_MAX: Duration = Duration::from_hours(24);

/// How far the signed time may lie from now, on either side, in whole seconds: 1 s to 24 h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tolerance(Duration);

/// Why a text is no tolerance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ToleranceError {
    /// It is no duration.
    #[error(transparent)]
    Written(#[from] DurationError),
    /// It is outside its limits.
    #[error("a tolerance is 1s to 24h, in whole seconds")]
    OutsideLimits,
}

impl Tolerance {
    /// Accepts a tolerance within its limits.
    ///
    /// # Errors
    /// [`ToleranceError`].
    pub fn new(duration: Duration) -> Result<Self, ToleranceError> {
        let fits = (Duration::from_secs(1)..=TOLERANCE_MAX).contains(&duration)
            && duration.subsec_nanos() == 0;
        if fits { Ok(Self(duration)) } else { Err(ToleranceError::OutsideLimits) }
    }

    /// In seconds.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.0.as_secs()
    }

    /// Judges the text of a signed time, in whole seconds since the Unix epoch.
    pub(super) fn judge(self, signed_at: &str, now_unix_seconds: i64) -> Result<(), Refusal> {
        if signed_at.is_empty() || !signed_at.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Refusal::TimestampMalformed);
        }
        let signed_at: i64 = signed_at.parse().map_err(|_| Refusal::TimestampMalformed)?;
        match now_unix_seconds.abs_diff(signed_at).saturating_sub(self.seconds()) {
            0 => Ok(()),
            by_seconds if signed_at < now_unix_seconds => Err(Refusal::Stale { by_seconds }),
            by_seconds => Err(Refusal::NotYetValid { by_seconds }),
        }
    }
}

impl Default for Tolerance {
    fn default() -> Self {
        Self(TOLERANCE_DEFAULT)
    }
}

impl TryFrom<String> for Tolerance {
    type Error = ToleranceError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(duration::parse(&text)?)
    }
}

impl From<Tolerance> for String {
    fn from(tolerance: Tolerance) -> Self {
        duration::render(tolerance.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_and_not_yet_valid_are_told_apart_with_the_difference() {
        let tolerance = Tolerance::default();
        let now = 1_700_000_000;
        for (signed_at, expected) in [
            ("1700000000", Ok(())),
            ("1699999700", Ok(())),
            ("1700000300", Ok(())),
            ("1699999699", Err(Refusal::Stale { by_seconds: 1 })),
            ("1700000301", Err(Refusal::NotYetValid { by_seconds: 1 })),
            ("0", Err(Refusal::Stale { by_seconds: 1_699_999_700 })),
            ("", Err(Refusal::TimestampMalformed)),
            ("-1", Err(Refusal::TimestampMalformed)),
            ("+1700000000", Err(Refusal::TimestampMalformed)),
            ("99999999999999999999", Err(Refusal::TimestampMalformed)),
        ] {
            assert_eq!(tolerance.judge(signed_at, now), expected, "{signed_at}");
        }
    }

    #[test]
    fn a_tolerance_is_one_second_to_a_day() {
        let of = |text: &str| Tolerance::try_from(text.to_owned());
        assert_eq!(of("5m"), Ok(Tolerance::default()));
        assert!(of("1s").is_ok() && of("24h").is_ok());
        for bad in ["0s", "25h", "1500ms", "five minutes", ""] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
