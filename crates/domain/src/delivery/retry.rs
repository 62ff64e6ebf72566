//! When a failed delivery is tried again.
//!
//! A schedule holds waits, not instants: the database's clock turns a wait into a due time. The
//! random draw of the jitter and the current time are arguments.

use std::time::Duration;

use time::{
    OffsetDateTime, PrimitiveDateTime, format_description::StaticFormatDescription,
    macros::format_description, parsing::Parsed,
};

/// The most delays in a schedule: 30.
pub const DELAYS_MAX: usize = 30;

/// The longest single delay: 7 days.
pub const DELAY_MAX: Duration = Duration::from_hours(7 * 24);

/// The longest wait that a receiver's `Retry-After` is granted: 24 hours.
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// The default floor of the wait after an answer that means overload: 60 s.
///
/// Standard Webhooks, "Delivery success and failure": throttle after 429, 502 and 504.
pub const OVERLOAD_FLOOR_DEFAULT: Duration = Duration::from_mins(1);

/// The waits between the attempts of one cycle: 1 to 30 delays of 0 to 7 days each.
///
/// The first attempt is made at once. After the n-th failed attempt, delay n is waited, counted
/// from 1. So a cycle has one attempt more than there are delays.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetrySchedule {
    /// Not empty, at most [`DELAYS_MAX`].
    delays: Vec<Duration>,
}

/// Why a list of delays is not a retry schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RetryScheduleError {
    /// The list is empty.
    #[error("a retry schedule has 1 to {DELAYS_MAX} delays, this one none")]
    Empty,
    /// The list is longer than [`DELAYS_MAX`].
    #[error("a retry schedule has 1 to {DELAYS_MAX} delays, this one {count}")]
    TooMany {
        /// How many delays were given.
        count: usize,
    },
    /// A delay is longer than [`DELAY_MAX`].
    #[error("a retry delay is at most {} s long, delay {position} is {} s", DELAY_MAX.as_secs(), delay.as_secs_f64())]
    DelayTooLong {
        /// Which delay, counted from 1.
        position: usize,
        /// The delay that was given.
        delay: Duration,
    },
}

impl Default for RetrySchedule {
    /// The example schedule of Standard Webhooks, "Deliverability and reliability": after 5 s,
    /// 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, ten attempts in a little over three days.
    fn default() -> Self {
        let hours = [2, 5, 10, 14, 20, 24].map(Duration::from_hours);
        let mut delays =
            vec![Duration::from_secs(5), Duration::from_mins(5), Duration::from_mins(30)];
        delays.extend(hours);
        Self { delays }
    }
}

impl RetrySchedule {
    /// Takes the waits in order.
    ///
    /// # Errors
    /// [`RetryScheduleError`], which names the limit.
    pub fn new(delays: Vec<Duration>) -> Result<Self, RetryScheduleError> {
        if delays.is_empty() {
            return Err(RetryScheduleError::Empty);
        }
        if delays.len() > DELAYS_MAX {
            return Err(RetryScheduleError::TooMany { count: delays.len() });
        }
        for (delay, position) in delays.iter().zip(1..) {
            if *delay > DELAY_MAX {
                return Err(RetryScheduleError::DelayTooLong { position, delay: *delay });
            }
        }
        Ok(Self { delays })
    }

    /// The waits in order, 1 to [`DELAYS_MAX`] of them.
    #[must_use]
    pub fn delays(&self) -> &[Duration] {
        &self.delays
    }

    /// How many attempts a cycle has: 2 to 31.
    #[must_use]
    pub fn attempts_max(&self) -> u32 {
        // At most 31; the fallback of a conversion that cannot fail.
        u32::try_from(self.delays.len()).map_or(u32::MAX, |delays| delays + 1)
    }

    /// The wait before the next attempt when `failed_attempts` of this cycle have failed.
    ///
    /// Zero before the first attempt. `None` when the cycle is spent.
    #[must_use]
    pub fn delay_after(&self, failed_attempts: u32) -> Option<Duration> {
        match failed_attempts {
            0 => Some(Duration::ZERO),
            n => self.delays.get(position(n)).copied(),
        }
    }

    /// How long a delivery is parked whose claim lapsed for the `lapses`-th time in a row.
    ///
    /// Lapses climb the same delays as attempts, and stay on the last: a lapse does not spend the
    /// cycle. The store computes the same in SQL as
    /// `delays[LEAST(lapses + cycle_attempts, cardinality(delays))]`. With neither lapses nor
    /// attempts, where that is NULL, this is the first delay.
    #[must_use]
    pub fn lapse_delay(&self, lapses: u32, cycle_attempts: u32) -> Duration {
        let index = position(lapses.saturating_add(cycle_attempts));
        let clamped = self.delays.get(index).or(self.delays.last());
        // A schedule is never empty.
        clamped.copied().unwrap_or_default()
    }
}

/// The index of the n-th element, counted from 1. Zero is taken as 1.
fn position(n: u32) -> usize {
    usize::try_from(n.saturating_sub(1)).unwrap_or(usize::MAX)
}

/// Spreads a delay by up to 20 % to either side, so that what failed together is not retried
/// together (Standard Webhooks, "Deliverability and reliability").
///
/// `draw` is uniform in `[0, 1)`: 0 gives 80 %, 0.5 the delay itself, close to 1 gives 120 %. What
/// lies outside is clamped, and NaN counts as 0.5. The result is in whole milliseconds, rounded
/// down.
#[must_use]
pub fn jittered(delay: Duration, draw: f64) -> Duration {
    let draw = if draw.is_nan() { 0.5 } else { draw.clamp(0.0, 1.0) };
    let seconds = delay.as_secs_f64() * (0.8 + 0.4 * draw);
    let spread = Duration::try_from_secs_f64(seconds).unwrap_or(delay);
    Duration::new(spread.as_secs(), spread.subsec_millis() * 1_000_000)
}

/// The wait that the `Retry-After` lines of one response ask for.
///
/// Only a single line counts. The field is no list (RFC 9110 section 10.2.3), so several lines
/// are invalid (section 5.3), and obeying one of them would be a guess.
pub fn pick_retry_after<'a>(
    lines: impl IntoIterator<Item = &'a [u8]>,
    now: OffsetDateTime,
) -> Option<Duration> {
    let mut lines = lines.into_iter();
    match (lines.next(), lines.next()) {
        (Some(only), None) => parse_retry_after(only, now),
        _ => None,
    }
}

/// The wait that one `Retry-After` line asks for, at most [`RETRY_AFTER_MAX`].
///
/// The value is a number of seconds in digits, or an HTTP-date in any of its three forms (RFC 9110
/// sections 10.2.3 and 5.6.7). Spaces and tabs around it are ignored. A date that is past asks for
/// no wait. The day of the week is not compared with the date. `None` means that the value is
/// invalid and is to be ignored.
#[must_use]
pub fn parse_retry_after(value: &[u8], now: OffsetDateTime) -> Option<Duration> {
    let text = str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    if text.is_empty() {
        return None;
    }
    let wait = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Only digits, so what does not parse is too large to hold.
        text.parse().map_or(Duration::MAX, Duration::from_secs)
    } else {
        Duration::try_from(parse_http_date(text, now)? - now).unwrap_or_default()
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
const IMF_FIXDATE: StaticFormatDescription = format_description!(
    version = 2,
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);

/// `Sunday, 06-Nov-94 08:49:37 GMT`
const RFC_850: StaticFormatDescription = format_description!(
    version = 2,
    "[weekday], [day]-[month repr:short]-[year repr:last_two] [hour]:[minute]:[second] GMT"
);

/// `Sun Nov  6 08:49:37 1994`
const ASCTIME: StaticFormatDescription = format_description!(
    version = 2,
    "[weekday repr:short] [month repr:short] [day padding:space] [hour]:[minute]:[second] [year]"
);

fn parse_http_date(text: &str, now: OffsetDateTime) -> Option<OffsetDateTime> {
    let date = PrimitiveDateTime::parse(text, IMF_FIXDATE)
        .or_else(|_| PrimitiveDateTime::parse(text, ASCTIME))
        .ok()
        .or_else(|| parse_rfc_850(text, now))?;
    Some(date.assume_utc())
}

/// The two-digit year is the latest one that is not more than 50 years ahead (RFC 9110 section
/// 5.6.7), compared by calendar year.
fn parse_rfc_850(text: &str, now: OffsetDateTime) -> Option<PrimitiveDateTime> {
    let mut parsed = Parsed::new();
    if !parsed.parse_items(text.as_bytes(), RFC_850).ok()?.is_empty() {
        return None;
    }
    let latest_year = now.year() + 50;
    let years_before = (latest_year - i32::from(parsed.year_last_two()?)).rem_euclid(100);
    parsed.set_year(latest_year - years_before)?;
    parsed.try_into().ok()
}

#[cfg(test)]
mod tests;
