//! Whether a worker makes progress: what its `/readyz` tells.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use process::metrics;
use tokio::time::Instant;

/// What all parts of a worker tell of its progress. A clone is the same.
#[derive(Debug, Clone)]
pub struct Health {
    shared: Arc<Mutex<State>>,
    stalled_after: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// The database has answered with a schema that this build can use.
    is_checked: bool,
    is_away: bool,
    /// Since when something has been due and nothing was claimed or recorded.
    due_since: Option<Instant>,
}

/// Why a worker is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReady {
    /// The database has not answered yet.
    Starting,
    /// The database does not answer.
    DatabaseAway,
    /// Deliveries are due, and for long none was claimed.
    Stalled,
}

impl NotReady {
    /// The reason in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "the database has not answered yet",
            Self::DatabaseAway => "the database does not answer",
            Self::Stalled => "deliveries are due and none is claimed",
        }
    }
}

impl Health {
    pub(crate) fn new(stalled_after: Duration) -> Self {
        metrics::DATABASE_AWAY.set(0);
        Self { shared: Arc::default(), stalled_after }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in it panics half way.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn checked(&self) {
        self.state().is_checked = true;
    }

    /// Whether the database answers. Answers whether that is new.
    pub(crate) fn is_away(&self, is_away: bool) -> bool {
        let is_new = std::mem::replace(&mut self.state().is_away, is_away) != is_away;
        if is_new {
            metrics::DATABASE_AWAY.set(is_away.into());
        }
        is_new
    }

    /// A look found something due.
    pub(crate) fn found_due(&self) {
        self.state().due_since.get_or_insert_with(Instant::now);
    }

    /// Nothing is due, or something was claimed, or its endpoint may give no more for now, or a result
    /// was recorded.
    pub(crate) fn progressed(&self) {
        self.state().due_since = None;
    }

    /// Whether the worker can be counted on.
    ///
    /// # Errors
    /// Why not.
    pub fn readiness(&self) -> Result<(), NotReady> {
        let state = self.state();
        if state.is_away {
            Err(NotReady::DatabaseAway)
        } else if !state.is_checked {
            Err(NotReady::Starting)
        } else if state.due_since.is_some_and(|since| since.elapsed() >= self.stalled_after) {
            Err(NotReady::Stalled)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn a_worker_is_stalled_while_something_is_due_for_long_and_nothing_is_claimed() {
        let (at_once, later) = (Health::new(Duration::ZERO), Health::new(LONG));
        for health in [&at_once, &later] {
            assert_eq!(health.readiness(), Err(NotReady::Starting));
            health.checked();
            assert_eq!(health.readiness(), Ok(()), "nothing is due");
            health.found_due();
        }
        assert_eq!(later.readiness(), Ok(()), "not for long yet");
        assert_eq!(at_once.readiness(), Err(NotReady::Stalled));
        let since = at_once.state().due_since;
        at_once.found_due();
        assert_eq!(at_once.state().due_since, since, "it counts from when it was first found");
        at_once.progressed();
        assert_eq!(at_once.readiness(), Ok(()));
    }

    #[tokio::test]
    async fn that_the_database_went_away_is_new_once() {
        let health = Health::new(LONG);
        health.checked();
        assert!(health.is_away(true) && !health.is_away(true));
        assert_eq!(health.readiness(), Err(NotReady::DatabaseAway));
        assert!(health.is_away(false) && !health.is_away(false));
        assert_eq!(health.readiness(), Ok(()));
    }
}
