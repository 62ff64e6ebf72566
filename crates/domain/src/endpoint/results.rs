//! What results of tries tell of the endpoint itself.

use crate::delivery::{Failure, Outcome};

/// What one result tells of its endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// A 2xx head came.
    Succeeded,
    /// No answer came, or another one.
    Failed,
    /// Nothing was sent, for a reason of our own.
    Nothing,
}

impl Signal {
    /// What an outcome tells.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Answered { status: 200..=299, .. } => Self::Succeeded,
            Outcome::Unanswered(Failure::Unsendable) => Self::Nothing,
            Outcome::Answered { .. } | Outcome::Unanswered(_) => Self::Failed,
        }
    }
}

/// Results that are recorded together, counted.
///
/// Only those count that took effect under the fence, and whose request was made by the configuration
/// that counts: not by one from before another URL, or before an operator enabled the endpoint. In what
/// order they came is not looked at: they were open at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// How many succeeded.
    pub succeeded: u32,
    /// How many failed.
    pub failed: u32,
}

impl Tally {
    /// Counts one more.
    pub fn count(&mut self, signal: Signal) {
        match signal {
            Signal::Succeeded => self.succeeded += 1,
            Signal::Failed => self.failed += 1,
            Signal::Nothing => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_2xx_head_is_a_success_and_what_was_never_sent_tells_nothing() {
        let answered = |status| Signal::of(&Outcome::Answered { status, retry_after: None });
        assert_eq!(answered(200), Signal::Succeeded);
        assert_eq!(answered(299), Signal::Succeeded);
        for status in [199, 300, 404, 410, 429, 500] {
            assert_eq!(answered(status), Signal::Failed, "{status}");
        }
        for failure in Failure::ALL {
            let told = Signal::of(&Outcome::Unanswered(failure));
            let unsendable = failure == Failure::Unsendable;
            assert_eq!(told, if unsendable { Signal::Nothing } else { Signal::Failed });
        }
    }
}
