//! Look-ups that share statements: what is asked during a statement is asked by the next one.
//!
//! * Nothing is remembered. An answer is read by a statement that began after its question came, as if
//!   each had its own: a key that was revoked ends with the next request.
//! * Nobody waits for a timer. A question that meets a free statement is asked at once and alone.
//! * A statement is bounded. What waits is bounded by the open connections, each of which asks one
//!   thing at a time.
//! * Where the database refuses a statement, its questions are asked singly.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use store::StoreError;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// The most questions of one statement.
const QUESTIONS_MAX: usize = 100;
/// How many statements are under way at once. More would only make each of them smaller: what costs is
/// the statement, not its rows.
const STATEMENTS_MAX: usize = 1;

/// Why there is no answer.
#[derive(Debug, Clone)]
pub(crate) enum NotRead {
    /// The store gave none.
    Failed(Arc<StoreError>),
    /// The statement ended without one: a fault of ours, or the process stops.
    Lost,
}

type Answer<V> = Result<Option<V>, NotRead>;
/// All that asked for one thing.
type Waiting<V> = Vec<oneshot::Sender<Answer<V>>>;
type Read<K, V> =
    Box<dyn Fn(Vec<K>) -> BoxFuture<'static, Result<Vec<Option<V>>, StoreError>> + Send + Sync>;

/// Look-ups of one kind. A clone is the same.
pub(crate) struct Lookups<K, V> {
    shared: Arc<Shared<K, V>>,
}

struct Shared<K, V> {
    /// Answers in the order of the questions.
    read: Read<K, V>,
    /// Where statements run: not on the thread of a caller, which may end before them.
    runtime: Handle,
    open: Mutex<Open<K, V>>,
}

/// Questions that nobody asks yet.
struct Open<K, V> {
    order: VecDeque<K>,
    waiting: HashMap<K, Waiting<V>>,
    statements: usize,
}

impl<K, V> fmt::Debug for Lookups<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookups").finish_non_exhaustive()
    }
}

impl<K, V> Lookups<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Must be called inside the Tokio runtime that the store's connections belong to.
    pub(crate) fn new<F>(read: impl Fn(Vec<K>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Vec<Option<V>>, StoreError>> + Send + 'static,
    {
        let read: Read<K, V> = Box::new(move |keys| Box::pin(read(keys)));
        let open = Open { order: VecDeque::new(), waiting: HashMap::new(), statements: 0 };
        let shared = Shared { read, runtime: Handle::current(), open: Mutex::new(open) };
        Self { shared: Arc::new(shared) }
    }

    /// What has this key, if anything has.
    pub(crate) async fn find(&self, key: K) -> Answer<V> {
        let (answer, answered) = oneshot::channel();
        if self.shared.open().enter(key, answer) {
            self.shared.runtime.spawn(Arc::clone(&self.shared).read_until_empty());
        }
        answered.await.unwrap_or(Err(NotRead::Lost))
    }
}

impl<K: Clone + Eq + Hash, V> Open<K, V> {
    /// Lets a question in, and says whether a statement has to begin for it.
    fn enter(&mut self, key: K, answer: oneshot::Sender<Answer<V>>) -> bool {
        let waiting = self.waiting.entry(key.clone()).or_default();
        if waiting.is_empty() {
            self.order.push_back(key);
        }
        waiting.push(answer);
        let begins = self.statements < STATEMENTS_MAX;
        self.statements += usize::from(begins);
        begins
    }

    /// What the next statement asks, and whom it answers. Nothing: the statement is free.
    fn next(&mut self) -> (Vec<K>, Vec<Waiting<V>>) {
        let count = self.order.len().min(QUESTIONS_MAX);
        let keys: Vec<K> = self.order.drain(..count).collect();
        let waiting = keys.iter().map(|key| self.waiting.remove(key).unwrap_or_default()).collect();
        if keys.is_empty() {
            self.statements -= 1;
        }
        (keys, waiting)
    }
}

impl<K, V> Shared<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn open(&self) -> MutexGuard<'_, Open<K, V>> {
        // Nothing in there panics half way.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read_until_empty(self: Arc<Self>) {
        loop {
            let (keys, waiting) = self.open().next();
            if keys.is_empty() {
                return;
            }
            let answers = match self.read(keys.clone()).await {
                Err(NotRead::Failed(error)) if keys.len() > 1 && !error.is_transient() => {
                    self.read_singly(keys).await
                }
                Err(why) => keys.iter().map(|_| Err(why.clone())).collect(),
                Ok(found) => found.into_iter().map(Ok).collect::<Vec<_>>(),
            };
            for (waiting, answer) in waiting.into_iter().zip(answers) {
                for one in waiting {
                    // A caller that went away is told nothing.
                    let _ = one.send(answer.clone());
                }
            }
        }
    }

    /// One of them cannot be read. The others can.
    async fn read_singly(&self, keys: Vec<K>) -> Vec<Answer<V>> {
        let mut answers = Vec::with_capacity(keys.len());
        for key in keys {
            answers.push(self.read(vec![key]).await.map(|mut found| found.pop().flatten()));
        }
        answers
    }

    /// On a task of its own, so that a panic ends the statement and not what waits behind it.
    async fn read(&self, keys: Vec<K>) -> Result<Vec<Option<V>>, NotRead> {
        match self.runtime.spawn((self.read)(keys)).await {
            Ok(found) => found.map_err(|error| NotRead::Failed(Arc::new(error))),
            Err(ended) => {
                tracing::error!(error = %ended, "a look-up ended without an answer");
                Err(NotRead::Lost)
            }
        }
    }
}
