//! Rate limits: so many requests per window.
//!
//! Windows are fixed and begin at multiples of their length since 1970, on the database's clock, so
//! that every process means the same window. A counter only grows within its window: who reserves
//! learns where the counter stands afterwards, and that tells how many of the reserved units were
//! within the limit.

use std::time::Duration;

use time::OffsetDateTime;

/// The most units that a limit may allow per window.
pub const RATE_UNITS_MAX: u32 = 1_000_000;
/// The shortest window.
pub const RATE_WINDOW_MIN: Duration = Duration::from_secs(1);
/// The longest window.
pub const RATE_WINDOW_MAX: Duration = Duration::from_hours(24);

/// At most so many units per window. Windows are whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RateLimit {
    units: u32,
    window: Duration,
}

/// Why something is not a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RateLimitError {
    /// No unit, or more than [`RATE_UNITS_MAX`].
    #[error("must allow between 1 and 1,000,000 per window")]
    Units,
    /// Not whole seconds from [`RATE_WINDOW_MIN`] to [`RATE_WINDOW_MAX`].
    #[error("must have a window of whole seconds, from 1 s to 24 h")]
    Window,
}

impl RateLimit {
    /// What an endpoint takes by default: 600 per 60 s.
    pub const INGEST_DEFAULT: Self = Self { units: 600, window: Duration::from_secs(60) };
    /// What one source address may send by default: 6,000 per 60 s.
    pub const SOURCE_DEFAULT: Self = Self { units: 6_000, window: Duration::from_secs(60) };

    /// How many refused requests of one source are noted: 60 per 60 s.
    pub const REFUSALS: Self = Self { units: 60, window: Duration::from_secs(60) };

    /// So many units per window.
    pub fn new(units: u32, window: Duration) -> Result<Self, RateLimitError> {
        if !(1..=RATE_UNITS_MAX).contains(&units) {
            return Err(RateLimitError::Units);
        }
        if !(RATE_WINDOW_MIN..=RATE_WINDOW_MAX).contains(&window) || window.subsec_nanos() != 0 {
            return Err(RateLimitError::Window);
        }
        Ok(Self { units, window })
    }

    /// How many units a window allows.
    #[must_use]
    pub fn units(self) -> u32 {
        self.units
    }

    /// How long a window is.
    #[must_use]
    pub fn window(self) -> Duration {
        self.window
    }

    /// How much of its window is over, that much time after 1970.
    #[must_use]
    pub fn elapsed(self, since_epoch: Duration) -> Duration {
        // A window has whole seconds, so what is below a second is what it was.
        let seconds = since_epoch.as_secs() % self.window.as_secs();
        Duration::new(seconds, since_epoch.subsec_nanos())
    }

    /// How many units of the window that `now` is in were used, of a counter that stands at `used` in
    /// the window that began at `start`.
    ///
    /// A window that began later than this one counts as this one: a clock that was set back, or a
    /// limit that got a longer window, must not open a fresh budget.
    #[must_use]
    pub fn used(self, now: OffsetDateTime, start: Option<OffsetDateTime>, used: u32) -> u32 {
        if start.is_some_and(|start| start >= self.window_start(now)) { used } else { 0 }
    }

    /// When the window began that `now` is in.
    #[must_use]
    pub fn window_start(self, now: OffsetDateTime) -> OffsetDateTime {
        let since_epoch = (now - OffsetDateTime::UNIX_EPOCH).try_into().unwrap_or_default();
        now - self.elapsed(since_epoch)
    }

    /// How many of `reserved` units were within the limit, the counter standing at `used` with them.
    /// First come, first served: those before them have theirs.
    #[must_use]
    pub fn granted(self, used: u32, reserved: u32) -> u32 {
        let before = used.saturating_sub(reserved);
        self.units.saturating_sub(before).min(reserved)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limit(units: u32, seconds: u64) -> RateLimit {
        RateLimit::new(units, Duration::from_secs(seconds)).unwrap()
    }

    #[test]
    fn a_limit_outside_its_bounds_is_refused() {
        let second = Duration::from_secs(1);
        assert_eq!(RateLimit::new(0, second), Err(RateLimitError::Units));
        assert_eq!(RateLimit::new(1_000_001, second), Err(RateLimitError::Units));
        for window in [Duration::ZERO, Duration::from_millis(1_500), Duration::from_secs(86_401)] {
            assert_eq!(RateLimit::new(1, window), Err(RateLimitError::Window));
        }
        assert!(RateLimit::new(1_000_000, Duration::from_hours(24)).is_ok());
        let defaults = [RateLimit::INGEST_DEFAULT, RateLimit::SOURCE_DEFAULT];
        for default in defaults {
            assert_eq!(RateLimit::new(default.units, default.window), Ok(default));
        }
    }

    #[test]
    fn windows_begin_at_multiples_of_their_length_since_1970() {
        let at = Duration::from_millis(120_500);
        assert_eq!(limit(1, 60).elapsed(at), Duration::from_millis(500));
        assert_eq!(limit(1, 50).elapsed(at), Duration::from_millis(20_500));
        assert_eq!(limit(1, 60).elapsed(Duration::from_secs(180)), Duration::ZERO);
    }

    #[test]
    fn what_an_earlier_window_used_is_over_and_what_a_later_one_used_is_not() {
        use time::macros::datetime;
        let now = datetime!(2026-01-02 03:04:05.6 UTC);
        assert_eq!(limit(5, 60).window_start(now), datetime!(2026-01-02 03:04 UTC));
        assert_eq!(limit(5, 60).used(now, None, 5), 0);
        assert_eq!(limit(5, 60).used(now, Some(datetime!(2026-01-02 03:03 UTC)), 5), 0);
        assert_eq!(limit(5, 60).used(now, Some(datetime!(2026-01-02 03:04 UTC)), 5), 5);
        assert_eq!(limit(5, 60).used(now, Some(datetime!(2026-01-02 03:05 UTC)), 5), 5);
    }

    #[test]
    fn the_first_units_are_granted_and_the_rest_are_not() {
        assert_eq!(limit(10, 1).granted(4, 4), 4);
        assert_eq!(limit(10, 1).granted(12, 4), 2);
        assert_eq!(limit(10, 1).granted(14, 4), 0);
        assert_eq!(limit(10, 1).granted(u32::MAX, 4), 0);
    }

    proptest! {
        /// However a window's units are reserved, the limit is granted, or all if they are fewer.
        #[test]
        fn exactly_the_limit_is_granted_in_any_partition(
            units in 1_u32..500,
            reserved in proptest::collection::vec(1_u32..40, 0..40),
        ) {
            let limit = limit(units, 60);
            let (mut used, mut granted) = (0, 0);
            for n in reserved {
                used += n;
                granted += limit.granted(used, n);
            }
            prop_assert_eq!(granted, used.min(units));
        }
    }
}
