//! How a worker learns at once that something is due.
//!
//! A wake-up carries nothing and promises nothing: it says that looking is worth it. Workers poll as
//! well, so one that is lost costs a poll interval and no delivery.

use std::sync::Arc;

use tokio::sync::watch;

use crate::new_id::uuid_now;

/// Raised in this process when something may be due. A clone is the same signal: a process that
/// opens two stores on one database gives both the same.
#[derive(Debug, Clone)]
pub struct DueSignal {
    raised: watch::Sender<()>,
    origin: Arc<str>,
}

/// A view of a [`DueSignal`] that remembers what it has seen.
#[derive(Debug, Clone)]
pub struct DueWatch {
    raised: watch::Receiver<()>,
}

/// Why a store listens no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listening {
    /// The connection was lost.
    Lost,
    /// What this process tells does not come back to it: something between it and the database, a
    /// transaction pooler, takes statements and delivers no notifications.
    Silent,
}

impl Default for DueSignal {
    fn default() -> Self {
        Self { raised: watch::Sender::new(()), origin: uuid_now().to_string().into() }
    }
}

impl DueSignal {
    /// Wakes all who wait. Whoever looks later finds it raised.
    pub fn raise(&self) {
        self.raised.send_replace(());
    }

    /// A view for which it is not raised yet.
    #[must_use]
    pub fn watch(&self) -> DueWatch {
        DueWatch { raised: self.raised.subscribe() }
    }

    /// Tells this process's own wake-ups apart, which need no way through the database.
    #[cfg(feature = "postgres")]
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }
}

impl DueWatch {
    /// Whether it was raised since this was last asked.
    pub fn take(&mut self) -> bool {
        let raised = self.raised.has_changed().unwrap_or(false);
        self.raised.mark_unchanged();
        raised
    }

    /// Waits until it is raised. It stays raised until it is taken.
    pub async fn raised(&self) {
        if self.raised.clone().changed().await.is_err() {
            // Nobody is left to raise it.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_raised_signal_is_seen_once_by_each_watch_however_often_it_was_raised() {
        let signal = DueSignal::default();
        let (mut one, mut other) = (signal.watch(), signal.watch());
        assert!(!one.take());
        signal.raise();
        signal.clone().raise();
        one.raised().await;
        assert!(one.take() && !one.take());
        assert!(other.take());
    }
}
