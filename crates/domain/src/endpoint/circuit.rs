//! The circuit breaker of an endpoint: it stops what would only fail, and finds out when that is over.
//!
//! ```text
//!  closed --70 % of at least 10 in 5 min failed, or 10 in a row--> open (30 s)
//!  open --its time is over--> half-open: one claim, the probe, opens it for the time of its lease
//!  half-open --the probe succeeds--> closed
//!  half-open --the probe fails--> open, twice as long as before, 10 min at most
//! ```
//!
//! Half-open is no state of its own but an open circuit whose time is over. While it is open nothing
//! counts but the result of the probe: what was sent before it opened can neither close it nor open it for
//! longer. A probe whose worker dies ends with its lease, and the next claim is another.

use std::time::Duration;

use time::OffsetDateTime;

use super::{Signal, Tally};
use crate::id::ClaimToken;

/// Results are counted over this time.
pub const WINDOW: Duration = Duration::from_mins(5);
/// So many results are needed in a window before their part decides.
pub const RESULTS_MIN: u32 = 10;
/// The part of failed results that opens the circuit, in percent.
pub const FAILED_PERCENT: u32 = 70;
/// So many failures in a row open it in any case.
pub const IN_A_ROW_MAX: u32 = 10;
/// How long it is open at first.
pub const OPEN_FIRST: Duration = Duration::from_secs(30);
/// How long it is open at the longest.
pub const OPEN_MAX: Duration = Duration::from_mins(10);

/// Whether requests go out, and what that is decided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Circuit {
    /// They do.
    Closed(Counts),
    /// They do not, but for a probe when the time is over.
    Open(Opening),
}

/// What is counted while the circuit is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Counts {
    /// Failures since the last results with a success among them.
    pub in_a_row: u32,
    /// When the window began; none if nothing was counted yet.
    pub since: Option<OffsetDateTime>,
    /// Successes in the window.
    pub succeeded: u32,
    /// Failures in the window.
    pub failed: u32,
}

/// An open circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opening {
    /// When it opened, from closed.
    pub since: OffsetDateTime,
    /// From then on one claim may send one request.
    pub until: OffsetDateTime,
    /// How often it has opened since it was closed, 1 at first.
    pub times: u32,
    /// What opened it.
    pub cause: OpenCause,
    /// The claim whose result decides; none if none is out.
    pub probe: Option<ClaimToken>,
}

/// What opened a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpenCause {
    /// So many failures in a row.
    InARow,
    /// So many of the results in a window.
    Share,
}

impl OpenCause {
    /// Every cause.
    pub const ALL: [Self; 2] = [Self::InARow, Self::Share];

    /// The name in answers and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InARow => "failures_in_a_row",
            Self::Share => "failure_share",
        }
    }
}

/// What results made of a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Turn {
    /// It was closed and is open: the endpoint is failing.
    Opened,
    /// It was open and is closed: the endpoint has recovered.
    Closed,
}

impl Default for Circuit {
    fn default() -> Self {
        Self::Closed(Counts::default())
    }
}

impl Counts {
    fn add(self, tally: Tally, now: OffsetDateTime) -> Self {
        let in_a_row = if tally.succeeded > 0 { 0 } else { self.in_a_row + tally.failed };
        match self.since.filter(|since| now < *since + WINDOW) {
            Some(since) => Self {
                in_a_row,
                since: Some(since),
                succeeded: self.succeeded + tally.succeeded,
                failed: self.failed + tally.failed,
            },
            None => Self {
                in_a_row,
                since: Some(now),
                succeeded: tally.succeeded,
                failed: tally.failed,
            },
        }
    }

    /// Why these counts open the circuit, if they do.
    fn opens(&self) -> Option<OpenCause> {
        let results = self.succeeded + self.failed;
        if self.in_a_row >= IN_A_ROW_MAX {
            Some(OpenCause::InARow)
        } else if results >= RESULTS_MIN && self.failed * 100 >= results * FAILED_PERCENT {
            Some(OpenCause::Share)
        } else {
            None
        }
    }
}

/// How long it is open the nth time in a row.
#[must_use]
pub fn open_for(times: u32) -> Duration {
    let doublings = times.saturating_sub(1).min(16);
    OPEN_FIRST.saturating_mul(1 << doublings).min(OPEN_MAX)
}

impl Circuit {
    /// Results were recorded together.
    ///
    /// `probe` is what the probe's result tells, if it is among them; `tally` has all of them.
    pub fn record(
        &mut self,
        tally: Tally,
        probe: Option<Signal>,
        now: OffsetDateTime,
    ) -> Option<Turn> {
        match *self {
            Self::Closed(_) if tally == Tally::default() => None,
            Self::Closed(counts) => {
                let counts = counts.add(tally, now);
                // A success is never what opens it.
                let cause = if tally.failed > 0 { counts.opens() } else { None };
                let opening = |cause| Opening {
                    since: now,
                    until: now + open_for(1),
                    times: 1,
                    cause,
                    probe: None,
                };
                *self = cause.map_or(Self::Closed(counts), |cause| Self::Open(opening(cause)));
                cause.map(|_| Turn::Opened)
            }
            Self::Open(opening) => {
                let times = match probe? {
                    Signal::Succeeded => {
                        *self = Self::default();
                        return Some(Turn::Closed);
                    }
                    Signal::Failed => opening.times.saturating_add(1),
                    Signal::Nothing => opening.times,
                };
                let until = now + open_for(times);
                *self = Self::Open(Opening { until, times, probe: None, ..opening });
                None
            }
        }
    }

    /// How many requests a claim at `now` may send.
    #[must_use]
    pub fn admits(&self, now: OffsetDateTime) -> u32 {
        match self {
            Self::Closed(_) => u32::MAX,
            Self::Open(opening) => u32::from(opening.until <= now),
        }
    }

    /// A claim took what it sends under `token` and for `lease`: at an open circuit that is the probe.
    pub fn claim(&mut self, token: ClaimToken, lease: Duration, now: OffsetDateTime) {
        if let Self::Open(opening) = self {
            opening.until = now + lease;
            opening.probe = Some(token);
        }
    }

    /// A claim was given back unsent: if it was the probe, another can be made at once.
    pub fn give_back(&mut self, token: ClaimToken, now: OffsetDateTime) {
        match self {
            Self::Open(opening) if opening.probe == Some(token) => {
                opening.until = opening.until.min(now);
                opening.probe = None;
            }
            Self::Open(_) | Self::Closed(_) => {}
        }
    }
}
