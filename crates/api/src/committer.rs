//! Group commit: submissions that arrive while others are being stored share the next commit.
//!
//! * A submission that meets a free flush is stored at once and alone; one that meets none waits for the
//!   first that ends, together with all that came meanwhile. It does not wait long: beside a flush that is
//!   slow another begins.
//! * A flush is bounded in rows and bytes, and so is what waits. A full queue refuses, it never drops.
//! * A flush belongs to no request. A caller that goes away does not cancel it for the others.
//! * When the answer to a commit is lost the flush is tried again with the same ids, which stores
//!   nothing twice. When the database refuses a flush its rows are stored singly, so that a bad one
//!   costs its neighbours nothing.

mod flush;
mod queue;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use store::submission::{Acceptance, NewSubmission};
use store::{Store, StoreError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use self::queue::Queue;
use crate::Waker;

/// How long others wait for a flush that has begun. One behind a key that somebody holds takes longer, and
/// must not hold up those behind it.
const PATIENCE: Duration = Duration::from_millis(10);

/// How much is stored at once, and how much waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitLimits {
    /// The most submissions of one flush. From 1, 100 by default.
    pub flush_rows_max: usize,
    /// The most bytes of payloads in one flush; a larger payload is flushed alone. 4 MiB by default.
    pub flush_bytes_max: usize,
    /// The most submissions that wait for a flush. From 1, 2,048 by default.
    pub queue_rows_max: usize,
    /// The most bytes of payloads that wait; a larger payload waits alone. 64 MiB by default.
    pub queue_bytes_max: usize,
    /// The most flushes at once; a store that has a single writer gets one. From 1, 4 by default. There is
    /// one, since more make each of them smaller and what costs is the flush, not its rows; and one more
    /// beside each that takes long or for each that would be full.
    pub flushes_max: usize,
}

impl Default for CommitLimits {
    fn default() -> Self {
        Self {
            flush_rows_max: 100,
            flush_bytes_max: 4 * 1024 * 1024,
            queue_rows_max: 2_048,
            queue_bytes_max: 64 * 1024 * 1024,
            flushes_max: 4,
        }
    }
}

/// Why a submission got no verdict.
#[derive(Debug, Clone)]
pub enum NotAccepted {
    /// Too many wait: it was not taken.
    QueueFull,
    /// The store gave no answer. Whether it was stored is open: the same key tells.
    Failed(Arc<StoreError>),
    /// The flush ended without an answer: a fault of ours, or the process stops.
    Lost,
}

/// The one way of the api to [`Store::accept`]. A clone is the same committer.
#[derive(Debug, Clone)]
pub struct Committer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<dyn Store>,
    /// Where flushes run: not on the thread of a caller, which may end before them.
    runtime: Handle,
    waker: Waker,
    queue: Mutex<Queue<Waiting>>,
    flushes: AtomicU64,
}

/// A submission, and where its verdict goes.
#[derive(Debug)]
struct Waiting {
    submission: NewSubmission,
    answer: oneshot::Sender<Result<Acceptance, NotAccepted>>,
}

impl Committer {
    /// A committer in front of this store, which wakes workers after each commit. Must be called inside the Tokio runtime that the store's
    /// connections belong to.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, waker: Waker, limits: CommitLimits) -> Self {
        let flushes_max = limits.flushes_max.min(store.writers_max());
        let queue = Mutex::new(Queue::new(CommitLimits { flushes_max, ..limits }));
        let runtime = Handle::current();
        let flushes = AtomicU64::new(0);
        Self { shared: Arc::new(Shared { store, runtime, waker, queue, flushes }) }
    }

    /// Stores a submission, or says what its key stands for. Answered after the commit.
    ///
    /// # Errors
    /// There is no verdict. A caller that asks again with the same ids or key stores nothing twice.
    pub async fn accept(&self, submission: NewSubmission) -> Result<Acceptance, NotAccepted> {
        let (answer, answered) = oneshot::channel();
        let bytes = submission.payload.len();
        let entered = self.shared.queue().enter(Waiting { submission, answer }, bytes);
        if let Some(batch) = entered.map_err(|_| NotAccepted::QueueFull)? {
            self.shared.runtime.spawn(Arc::clone(&self.shared).flush_until_empty(batch));
        }
        answered.await.unwrap_or(Err(NotAccepted::Lost))
    }

    /// How many flushes have begun.
    #[must_use]
    pub fn flushes(&self) -> u64 {
        self.shared.flushes.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue<Waiting>> {
        // Nothing in the queue panics half way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Flushes this batch, and then whatever has come meanwhile. Boxed, since it begins others of its kind.
    fn flush_until_empty(self: Arc<Self>, first: Vec<Waiting>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let mut next = Some(first);
            while let Some(batch) = next {
                let was_slow = self.flush(batch).await;
                next = self.queue().next(was_slow);
            }
        })
    }

    /// Flushes this batch. If that takes long another flush begins meanwhile, which is told.
    async fn flush(self: &Arc<Self>, batch: Vec<Waiting>) -> bool {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        let flush = flush::flush(Arc::clone(&self.store), self.waker.clone(), batch);
        let mut flushing = self.runtime.spawn(flush);
        let in_time = timeout(PATIENCE, &mut flushing).await;
        let was_slow = in_time.is_err();
        let ended = if let Ok(ended) = in_time {
            ended
        } else {
            let another = self.queue().slow();
            if let Some(batch) = another {
                self.runtime.spawn(Arc::clone(self).flush_until_empty(batch));
            }
            flushing.await
        };
        if let Err(ended) = ended {
            // Those of the batch are told by their dropped senders; the others go on.
            tracing::error!(error = %ended, "a flush ended without an answer");
        }
        was_slow
    }
}
