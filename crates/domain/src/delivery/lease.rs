//! Leases: how long a claim holds, and until when its owner may still send.
//!
//! The lease itself is an instant of the database's clock. A worker never compares that instant with
//! a clock of its own: it measures, on its monotonic clock, how long ago it *sent* the claim, which
//! is always more than the time that the database has counted since.

use std::time::Duration;

/// How much longer a lease is than the whole-call deadline of its endpoint.
pub const LEASE_MARGIN: Duration = Duration::from_secs(15);

/// How much of the margin is kept for recording the result.
pub const RECORD_RESERVE: Duration = Duration::from_secs(5);

/// From this many lapses in a row a claim may be given up, see [`LAPSE_WINDOW`].
pub const LAPSES_MAX: u32 = 10;

/// How long the lapses must have gone on before a claim is given up.
pub const LAPSE_WINDOW: Duration = Duration::from_hours(24);

/// The lease of a claim on an endpoint with this whole-call deadline.
#[must_use]
pub fn lease_for(deadline: Duration) -> Duration {
    deadline.saturating_add(LEASE_MARGIN)
}

/// Whether a request may still be started, `waited` after the claim was sent.
///
/// True while the request, taking its whole deadline, would leave [`RECORD_RESERVE`] of the lease.
#[must_use]
pub fn may_start(waited: Duration, deadline: Duration, lease: Duration) -> bool {
    waited.saturating_add(deadline).saturating_add(RECORD_RESERVE) <= lease
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_may_start_while_its_deadline_and_the_reserve_fit_into_the_lease() {
        let deadline = Duration::from_secs(15);
        let lease = lease_for(deadline);
        assert_eq!(lease, Duration::from_secs(30));
        assert!(may_start(Duration::from_secs(10), deadline, lease));
        assert!(!may_start(Duration::from_millis(10_001), deadline, lease));
        assert!(!may_start(Duration::MAX, deadline, lease));
    }
}
