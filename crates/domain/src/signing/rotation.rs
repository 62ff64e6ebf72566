//! Rotation of an endpoint's secrets: the new one signs at once, the old ones go on for an overlap.

use std::time::Duration;

use super::Scheme;
use crate::endpoint::SigningSchemes;

/// How many secrets of one scheme an endpoint may sign with at once: each is an entry of the header.
pub const LIVE_SECRETS_MAX: u32 = 10;
/// For how long old secrets go on when nobody says.
pub const OVERLAP_DEFAULT: Duration = Duration::from_hours(24);
/// The longest overlap.
pub const OVERLAP_MAX: Duration = Duration::from_hours(7 * 24);

/// For how long old secrets go on signing beside the new one: up to [`OVERLAP_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap(Duration);

/// The overlap is longer than [`OVERLAP_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be from 0 to 7 days")]
pub struct OverlapError;

impl Overlap {
    /// Accepts an overlap within its limit.
    pub fn new(overlap: Duration) -> Result<Self, OverlapError> {
        if overlap > OVERLAP_MAX { Err(OverlapError) } else { Ok(Self(overlap)) }
    }

    /// How long it is.
    #[must_use]
    pub fn duration(self) -> Duration {
        self.0
    }
}

impl Default for Overlap {
    fn default() -> Self {
        Self(OVERLAP_DEFAULT)
    }
}

/// How many secrets of each scheme are live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LiveSecrets {
    /// HMAC secrets.
    pub v1: u32,
    /// Ed25519 keys.
    pub v1a: u32,
}

/// Why nothing is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationRefused {
    /// The secret that was given is of a scheme that the endpoint does not sign by.
    SchemeUnused,
    /// With the new one, more than [`LIVE_SECRETS_MAX`] would be live.
    TooManyLive,
}

/// Whether secrets may be rotated now. `given` is the scheme of a secret that the caller supplied.
///
/// Without an overlap the old ones end at once, so any number of them may be live before.
///
/// # Errors
/// [`RotationRefused`].
pub fn may_rotate(
    schemes: SigningSchemes,
    live: LiveSecrets,
    given: Option<Scheme>,
    overlap: Overlap,
) -> Result<(), RotationRefused> {
    if given.is_some_and(|scheme| !scheme.is_used_by(schemes)) {
        return Err(RotationRefused::SchemeUnused);
    }
    let full = |scheme: Scheme, live| scheme.is_used_by(schemes) && live >= LIVE_SECRETS_MAX;
    let too_many = full(Scheme::V1, live.v1) || full(Scheme::V1a, live.v1a);
    if too_many && !overlap.0.is_zero() {
        return Err(RotationRefused::TooManyLive);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(hours: u64) -> Result<Overlap, OverlapError> {
        Overlap::new(Duration::from_hours(hours))
    }

    #[test]
    fn an_overlap_is_0_to_7_days_and_24_hours_if_nobody_says() {
        assert_eq!(overlap(24), Ok(Overlap::default()));
        assert!(overlap(0).is_ok() && overlap(168).is_ok());
        assert_eq!(Overlap::new(OVERLAP_MAX + Duration::from_nanos(1)), Err(OverlapError));
    }

    #[test]
    fn the_tenth_live_secret_of_a_scheme_in_use_is_the_last() {
        let day = Overlap::default();
        let live = |v1, v1a| LiveSecrets { v1, v1a };
        let full = Err(RotationRefused::TooManyLive);
        assert_eq!(may_rotate(SigningSchemes::V1, live(9, 0), None, day), Ok(()));
        assert_eq!(may_rotate(SigningSchemes::V1, live(10, 0), None, day), full);
        assert_eq!(may_rotate(SigningSchemes::V1a, live(10, 1), None, day), Ok(()));
        assert_eq!(may_rotate(SigningSchemes::Both, live(1, 10), None, day), full);
        let at_once = overlap(0).unwrap();
        assert_eq!(may_rotate(SigningSchemes::V1, live(10, 0), None, at_once), Ok(()));
    }

    #[test]
    fn a_given_secret_must_be_of_a_scheme_in_use() {
        let given = |schemes, scheme| {
            may_rotate(schemes, LiveSecrets::default(), Some(scheme), Overlap::default())
        };
        assert_eq!(given(SigningSchemes::V1, Scheme::V1), Ok(()));
        assert_eq!(given(SigningSchemes::V1, Scheme::V1a), Err(RotationRefused::SchemeUnused));
        assert_eq!(given(SigningSchemes::V1a, Scheme::V1), Err(RotationRefused::SchemeUnused));
        assert_eq!(given(SigningSchemes::Both, Scheme::V1a), Ok(()));
    }
}
