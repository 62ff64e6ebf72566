//! Rate limits: requests spend units of a counter that all processes share.
//!
//! * The counter is the database's, and so are its windows. Nothing is reserved ahead: a reservation
//!   asks for exactly as many units as requests wait for it here.
//! * While a counter is being asked, those who come wait and are reserved together with the next
//!   statement. The first of them get what is granted.
//! * Counters that somebody waits for share a statement, as many as there are: requests to a hundred
//!   endpoints cost one, not a hundred.
//! * A counter only grows within its window. Once the database has said that a limit is spent, it is
//!   so until that window ends, and nobody needs to ask again. When it ends is judged by what the
//!   database said was left of it, counted from before it was asked, on the monotonic clock: so never
//!   too late.
//! * A reservation belongs to no request: a caller that goes away does not cancel it for the others.

mod counters;
pub(crate) mod source;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use domain::rate_limit::RateLimit;
use store::rate_limit::{Limiter, Reservation, Reserved};
use store::{Store, StoreError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use self::counters::{Counters, Entered, Key, Turn};

/// Whether a request is within the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spent {
    /// It is.
    Granted,
    /// It is not, and nothing is until then.
    Denied {
        /// When the window ends.
        until: Instant,
    },
}

/// Why it is not known whether a request is within the limit.
#[derive(Debug, Clone)]
pub(crate) enum NotReserved {
    /// Too many wait.
    QueueFull,
    /// The store gave no answer.
    Failed(Arc<StoreError>),
    /// The reservation ended without an answer: a fault of ours, or the process stops.
    Lost,
}

/// The one way of the api to [`Store::reserve`]. A clone is the same limiter.
#[derive(Debug, Clone)]
pub(crate) struct RateLimiter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<dyn Store>,
    /// Where reservations run: not on the thread of a caller, which may end before them.
    runtime: Handle,
    counters: Mutex<Counters<Waiting>>,
}

/// Where the answer for a request goes.
type Waiting = oneshot::Sender<Result<Spent, NotReserved>>;

impl RateLimiter {
    /// A limiter in front of this store, in which at most `waiting_max` requests wait. Must be called
    /// inside the Tokio runtime that the store's connections belong to.
    pub(crate) fn new(store: Arc<dyn Store>, waiting_max: usize) -> Self {
        let counters = Mutex::new(Counters::new(waiting_max));
        Self { shared: Arc::new(Shared { store, runtime: Handle::current(), counters }) }
    }

    /// Spends one unit of a limit.
    pub(crate) async fn spend(
        &self,
        limiter: Limiter,
        subject: String,
        limit: RateLimit,
    ) -> Result<Spent, NotReserved> {
        let (answer, answered) = oneshot::channel();
        let key = (limiter, subject);
        let entered = self.shared.counters().enter(&key, limit, answer, Instant::now());
        match entered {
            Entered::Denied { until } => return Ok(Spent::Denied { until }),
            Entered::Full => return Err(NotReserved::QueueFull),
            Entered::Waiting => {}
            Entered::First => {
                self.shared.runtime.spawn(Arc::clone(&self.shared).reserve_until_empty());
            }
        }
        answered.await.unwrap_or(Err(NotReserved::Lost))
    }
}

impl Shared {
    fn counters(&self) -> MutexGuard<'_, Counters<Waiting>> {
        // Nothing in the counters panics half way.
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves for all that wait, and then for whoever has come meanwhile.
    async fn reserve_until_empty(self: Arc<Self>) {
        loop {
            let turns = self.counters().next(Instant::now());
            if turns.is_empty() {
                return;
            }
            self.reserve_turns(turns).await;
        }
    }

    async fn reserve_turns(&self, mut turns: Vec<Turn<Waiting>>) {
        let keys: Vec<Key> = turns.iter().map(|turn| turn.key.clone()).collect();
        for (waiting, until) in turns.iter_mut().flat_map(|turn| turn.denied.drain(..)) {
            tell(waiting, Ok(Spent::Denied { until }));
        }
        turns.retain(|turn| !turn.waiting.is_empty());
        let reservations: Vec<Reservation> = turns.iter().map(reservation).collect();
        let asked_at = Instant::now();
        match self.reserve(reservations.clone()).await {
            Ok(reserved) => {
                for (turn, reserved) in turns.into_iter().zip(reserved) {
                    self.answer(turn, asked_at, &Ok(reserved));
                }
            }
            // One of the counters may be at fault, which must not cost the others their answers.
            Err(NotReserved::Failed(error)) if turns.len() > 1 && !is_away(&error) => {
                for (turn, reservation) in turns.into_iter().zip(reservations) {
                    let asked_at = Instant::now();
                    let alone = self.reserve(vec![reservation]).await;
                    let alone = alone.and_then(|one| one.first().copied().ok_or(NotReserved::Lost));
                    self.answer(turn, asked_at, &alone);
                }
            }
            Err(error) => {
                for turn in turns {
                    self.answer(turn, asked_at, &Err(error.clone()));
                }
            }
        }
        let (mut counters, now) = (self.counters(), Instant::now());
        for key in &keys {
            counters.asked(key, now);
        }
    }

    fn answer(
        &self,
        turn: Turn<Waiting>,
        asked_at: Instant,
        reserved: &Result<Reserved, NotReserved>,
    ) {
        if let Ok(reserved) = reserved {
            self.counters().learn(&turn.key, reserved, asked_at);
        }
        tell_all(turn.waiting, asked_at, reserved);
    }

    /// On a task of its own, so that a panic ends the reservations and not what waits behind them.
    async fn reserve(&self, reservations: Vec<Reservation>) -> Result<Vec<Reserved>, NotReserved> {
        let store = Arc::clone(&self.store);
        let reserving = async move { store.reserve(&reservations).await };
        match self.runtime.spawn(reserving).await {
            Ok(reserved) => reserved.map_err(|error| NotReserved::Failed(Arc::new(error))),
            Err(ended) => {
                tracing::error!(error = %ended, "reservations ended without an answer");
                Err(NotReserved::Lost)
            }
        }
    }
}

fn reservation(turn: &Turn<Waiting>) -> Reservation {
    let (limiter, subject) = turn.key.clone();
    let units = u32::try_from(turn.waiting.len()).unwrap_or(u32::MAX);
    Reservation { limiter, subject, limit: turn.limit, units }
}

/// Asking again one by one would be of no use.
fn is_away(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { .. })
}

/// The first of them get what was granted.
fn tell_all(waiting: Vec<Waiting>, asked_at: Instant, answer: &Result<Reserved, NotReserved>) {
    match answer {
        Ok(reserved) => {
            let denied = Spent::Denied { until: asked_at + reserved.window_ends_in };
            let granted = usize::try_from(reserved.granted).unwrap_or(usize::MAX);
            for (place, waiting) in waiting.into_iter().enumerate() {
                tell(waiting, Ok(if place < granted { Spent::Granted } else { denied }));
            }
        }
        Err(error) => waiting.into_iter().for_each(|waiting| tell(waiting, Err(error.clone()))),
    }
}

fn tell(waiting: Waiting, answer: Result<Spent, NotReserved>) {
    // A caller that went away is told nothing.
    let _ = waiting.send(answer);
}
