//! How the receiver spoils a first attempt.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// What the receiver does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conduct {
    /// It takes it.
    Accept,
    /// It answers 500.
    Error,
    /// It answers after the deadline.
    Stall,
    /// It cuts the connection before it answers.
    Cut,
}

/// Spoils a share of first attempts.
#[derive(Debug)]
pub(super) struct Faults {
    rate: f64,
    seen: Mutex<HashSet<String>>,
}

impl Faults {
    pub(super) fn new(rate: f64) -> Self {
        Self { rate, seen: Mutex::new(HashSet::new()) }
    }

    /// What to do with a request of this `webhook-id`. Only its first one is ever spoilt.
    pub(super) fn conduct(&self, webhook_id: &str) -> Conduct {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let first = seen.insert(webhook_id.to_owned());
        if !first || fastrand::f64() >= self.rate {
            return Conduct::Accept;
        }
        match fastrand::u8(..3) {
            0 => Conduct::Error,
            1 => Conduct::Stall,
            _ => Conduct::Cut,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_first_attempts_are_spoilt_and_only_at_the_rate() {
        let (never, always) = (Faults::new(0.0), Faults::new(1.0));
        for id in ["a", "b", "c"] {
            assert_eq!(never.conduct(id), Conduct::Accept);
            assert_ne!(always.conduct(id), Conduct::Accept);
            assert_eq!(always.conduct(id), Conduct::Accept);
        }
    }
}
