//! Rate limits: units of a window, reserved in the database by every process from the same counter.

use std::collections::HashSet;
use std::time::Duration;

use domain::rate_limit::RateLimit;

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Limiter {
    /// The address that requests come from.
    Source,
    /// An endpoint's submissions.
    Endpoint,
    /// An API key's submissions.
    Key,
    /// Requests of a source of webhooks that could not be verified.
    Refusals,
}

impl Limiter {
    /// The name in answers and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Endpoint => "endpoint",
            Self::Key => "key",
            Self::Refusals => "refusals",
        }
    }
}

/// Units that a process asks for: as many as requests wait in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// What is limited.
    pub limiter: Limiter,
    /// Whom it counts. An address is a keyed digest.
    pub subject: String,
    /// The limit and its window.
    pub limit: RateLimit,
    /// How many units.
    pub units: u32,
}

/// What became of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved {
    /// How many of its units are within the limit: the first ones.
    pub granted: u32,
    /// All that is reserved in the window so far, by all processes.
    pub used: u32,
    /// The limit that `granted` was measured against.
    pub limit: RateLimit,
    /// How long the window went on when the database took the reservation.
    pub window_ends_in: Duration,
}

/// The places of reservations in rounds, in each of which a counter stands once, since a statement
/// cannot increment one row twice. Almost always that is one round.
pub(crate) fn rounds(reservations: &[Reservation]) -> Vec<Vec<usize>> {
    let mut rounds = Vec::new();
    let mut left: Vec<usize> = (0..reservations.len()).collect();
    while !left.is_empty() {
        let mut seen = HashSet::new();
        let first_of_its_counter = |place: &usize| {
            reservations.get(*place).is_some_and(|r| seen.insert((r.limiter, r.subject.as_str())))
        };
        let (round, later) = left.into_iter().partition(first_of_its_counter);
        rounds.push(round);
        left = later;
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_stands_once_in_a_round_and_the_order_is_kept() {
        let reservation = |subject: &str| Reservation {
            limiter: Limiter::Source,
            subject: subject.to_owned(),
            limit: RateLimit::SOURCE_DEFAULT,
            units: 1,
        };
        let all = ["a", "b", "a", "a", "c"].map(reservation);
        assert_eq!(rounds(&all), [vec![0, 1, 4], vec![2], vec![3]]);
        assert_eq!(rounds(&[]), [[0_usize; 0]; 0]);
    }
}
