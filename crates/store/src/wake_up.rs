//! How a worker learns at once that something is due.
//!
//! A wake-up names the endpoints, as far as they are known and few, so that a worker claims from them without
//! looking for who is due among all. It promises nothing. Workers poll as well, so one that is lost costs a
//! poll interval and no delivery.

#[cfg(feature = "postgres")]
pub(crate) mod told;

use std::collections::VecDeque;
use std::sync::Arc;

use domain::id::EndpointKey;
use tokio::sync::watch;

use crate::new_id::uuid_now;

/// How many endpoints one wake-up names at most: as text they fit into the 8,000 bytes of a notification. One
/// that would name more names none, and workers look.
pub const NAMED_MAX: usize = 200;
/// How many named endpoints are kept for a watch that is asked later. For one that missed some, others are due.
const KEPT_MAX: usize = 1_024;

/// Raised in this process when something may be due. A clone is the same signal: a process that
/// opens two stores on one database gives both the same.
#[derive(Debug, Clone)]
pub struct DueSignal {
    raised: watch::Sender<Raised>,
    origin: Arc<str>,
}

/// A view of a [`DueSignal`] that remembers what it has seen.
#[derive(Debug, Clone)]
pub struct DueWatch {
    raised: watch::Receiver<Raised>,
    seen: u64,
}

/// What may be due.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Due {
    /// At these endpoints. One may stand here more than once.
    pub endpoints: Vec<EndpointKey>,
    /// And at others, whose names are not known.
    pub others: bool,
}

/// What was told, in numbered order.
#[derive(Debug, Default)]
struct Raised {
    last: u64,
    named: VecDeque<(u64, EndpointKey)>,
    /// The last number at which something was told without a name, or a name was let go.
    unnamed: u64,
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
        let raised = watch::Sender::new(Raised::default());
        Self { raised, origin: uuid_now().to_string().into() }
    }
}

impl DueSignal {
    /// Wakes all who wait: something is due at these endpoints, or anywhere if there are none. Whoever looks
    /// later finds it raised.
    pub fn raise(&self, endpoints: &[EndpointKey]) {
        self.raised.send_modify(|raised| raised.add(endpoints));
    }

    /// A view for which it is not raised yet.
    #[must_use]
    pub fn watch(&self) -> DueWatch {
        let raised = self.raised.subscribe();
        let seen = raised.borrow().last;
        DueWatch { raised, seen }
    }

    /// Tells this process's own wake-ups apart, which need no way through the database.
    #[cfg(feature = "postgres")]
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }
}

impl Raised {
    fn add(&mut self, endpoints: &[EndpointKey]) {
        self.last += 1;
        if endpoints.is_empty() || endpoints.len() > NAMED_MAX {
            self.unnamed = self.last;
            return;
        }
        self.named.extend(endpoints.iter().map(|endpoint| (self.last, *endpoint)));
        while self.named.len() > KEPT_MAX {
            let let_go = self.named.pop_front().map_or(0, |(number, _)| number);
            self.unnamed = self.unnamed.max(let_go);
        }
    }

    fn since(&self, seen: u64) -> Due {
        let named = self.named.iter().filter(|(number, _)| *number > seen);
        Due {
            endpoints: named.map(|(_, endpoint)| *endpoint).collect(),
            others: self.unnamed > seen,
        }
    }
}

impl DueWatch {
    /// What it was raised for since this was last asked, if it was.
    pub fn take(&mut self) -> Option<Due> {
        let raised = self.raised.borrow_and_update();
        let seen = std::mem::replace(&mut self.seen, raised.last);
        (raised.last > seen).then(|| raised.since(seen))
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
    use uuid::Uuid;

    use super::*;

    fn endpoint(number: u128) -> EndpointKey {
        EndpointKey::from_uuid(Uuid::from_u128(number))
    }

    #[tokio::test]
    async fn a_raised_signal_is_seen_once_by_each_watch_however_often_it_was_raised() {
        let signal = DueSignal::default();
        let (mut one, mut other) = (signal.watch(), signal.watch());
        assert_eq!(one.take(), None);
        signal.raise(&[]);
        signal.clone().raise(&[endpoint(1), endpoint(2)]);
        one.raised().await;
        let due = Due { endpoints: vec![endpoint(1), endpoint(2)], others: true };
        assert_eq!((one.take(), one.take()), (Some(due.clone()), None));
        signal.raise(&[endpoint(3)]);
        let only = Due { endpoints: vec![endpoint(3)], others: false };
        assert_eq!(one.take(), Some(only));
        assert_eq!(other.take().map(|due| (due.endpoints.len(), due.others)), Some((3, true)));
        assert_eq!(signal.watch().take(), None);
    }

    #[test]
    fn what_is_kept_is_bounded_and_who_missed_some_is_told_of_others() {
        let signal = DueSignal::default();
        let (mut early, many) = (signal.watch(), (0..).map(endpoint));
        let all: Vec<EndpointKey> = many.take(NAMED_MAX + 1).collect();
        for _ in 0..=KEPT_MAX / NAMED_MAX {
            signal.raise(&all[..NAMED_MAX]);
        }
        let mut late = signal.watch();
        signal.raise(&all[..1]);
        assert_eq!(late.take(), Some(Due { endpoints: all[..1].to_vec(), others: false }));
        assert_eq!(
            early.take().map(|due| (due.endpoints.len(), due.others)),
            Some((KEPT_MAX, true))
        );
        signal.raise(&all);
        assert_eq!(
            late.take(),
            Some(Due { endpoints: Vec::new(), others: true }),
            "too many for names"
        );
    }
}
