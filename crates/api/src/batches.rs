//! Questions to the store that share statements: what is asked during a statement is asked by the next.
//!
//! * Nothing is remembered. An answer is given by a statement that began after its question came, as if
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
pub(crate) enum NotAnswered {
    /// The store gave none.
    Failed(Arc<StoreError>),
    /// The statement ended without one: a fault of ours, or the process stops.
    Lost,
}

type Ask<Q, A> =
    Box<dyn Fn(Vec<Q>) -> BoxFuture<'static, Result<Vec<A>, StoreError>> + Send + Sync>;
/// A question, and where its answer goes.
type Waiting<Q, A> = (Q, oneshot::Sender<Result<A, NotAnswered>>);

/// Questions of one kind. A clone is the same.
pub(crate) struct Batches<Q, A> {
    shared: Arc<Shared<Q, A>>,
}

struct Shared<Q, A> {
    /// Answers in the order of the questions.
    ask: Ask<Q, A>,
    /// Where statements run: not on the thread of a caller, which may end before them.
    runtime: Handle,
    open: Mutex<Open<Q, A>>,
}

/// Questions that no statement asks yet.
struct Open<Q, A> {
    waiting: VecDeque<Waiting<Q, A>>,
    statements: usize,
}

impl<Q, A> fmt::Debug for Batches<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").finish_non_exhaustive()
    }
}

impl<Q, A> Batches<Q, A>
where
    Q: Clone + Send + Sync + 'static,
    A: Send + 'static,
{
    /// Must be called inside the Tokio runtime that the store's connections belong to.
    pub(crate) fn new<F>(ask: impl Fn(Vec<Q>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Vec<A>, StoreError>> + Send + 'static,
    {
        let ask: Ask<Q, A> = Box::new(move |questions| Box::pin(ask(questions)));
        let open = Mutex::new(Open { waiting: VecDeque::new(), statements: 0 });
        Self { shared: Arc::new(Shared { ask, runtime: Handle::current(), open }) }
    }

    /// Look-ups: each statement asks for equal questions once.
    pub(crate) fn of_look_ups<F>(read: impl Fn(Vec<Q>) -> F + Send + Sync + 'static) -> Self
    where
        Q: Eq + Hash,
        A: Clone,
        F: Future<Output = Result<Vec<A>, StoreError>> + Send + 'static,
    {
        Self::new(move |questions: Vec<Q>| {
            let mut different = Vec::new();
            let mut places = HashMap::new();
            let asked = questions.into_iter().map(|question| {
                *places.entry(question.clone()).or_insert_with(|| {
                    different.push(question);
                    different.len() - 1
                })
            });
            let asked: Vec<usize> = asked.collect();
            let reading = read(different);
            async move {
                let answers = reading.await?;
                Ok(asked.into_iter().filter_map(|place| answers.get(place).cloned()).collect())
            }
        })
    }

    /// The answer to a question.
    pub(crate) async fn ask(&self, question: Q) -> Result<A, NotAnswered> {
        let (answer, answered) = oneshot::channel();
        if self.shared.open().enter(question, answer) {
            self.shared.runtime.spawn(Arc::clone(&self.shared).ask_until_empty());
        }
        answered.await.unwrap_or(Err(NotAnswered::Lost))
    }
}

impl<Q, A> Open<Q, A> {
    /// Lets a question in, and says whether a statement has to begin for it.
    fn enter(&mut self, question: Q, answer: oneshot::Sender<Result<A, NotAnswered>>) -> bool {
        self.waiting.push_back((question, answer));
        let begins = self.statements < STATEMENTS_MAX;
        self.statements += usize::from(begins);
        begins
    }

    /// What the next statement asks, and whom it answers. Nothing: the statement is free.
    fn next(&mut self) -> Vec<Waiting<Q, A>> {
        let count = self.waiting.len().min(QUESTIONS_MAX);
        self.statements -= usize::from(count == 0);
        self.waiting.drain(..count).collect()
    }
}

impl<Q, A> Shared<Q, A>
where
    Q: Clone + Send + Sync + 'static,
    A: Send + 'static,
{
    fn open(&self) -> MutexGuard<'_, Open<Q, A>> {
        // Nothing in there panics half way.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask_until_empty(self: Arc<Self>) {
        loop {
            let (questions, waiting): (Vec<Q>, Vec<_>) = self.open().next().into_iter().unzip();
            if questions.is_empty() {
                return;
            }
            let answers = match self.ask(questions.clone()).await {
                Err(NotAnswered::Failed(error)) if questions.len() > 1 && !error.is_transient() => {
                    self.ask_singly(questions).await
                }
                Err(why) => questions.iter().map(|_| Err(why.clone())).collect(),
                Ok(answers) => answers.into_iter().map(Ok).collect::<Vec<_>>(),
            };
            for (waiting, answer) in waiting.into_iter().zip(answers) {
                // A caller that went away is told nothing.
                let _ = waiting.send(answer);
            }
        }
    }

    /// One of them cannot be answered. The others can.
    async fn ask_singly(&self, questions: Vec<Q>) -> Vec<Result<A, NotAnswered>> {
        let mut answers = Vec::with_capacity(questions.len());
        for question in questions {
            let one = self.ask(vec![question]).await;
            answers.push(one.and_then(|mut one| one.pop().ok_or(NotAnswered::Lost)));
        }
        answers
    }

    /// On a task of its own, so that a panic ends the statement and not what waits behind it.
    async fn ask(&self, questions: Vec<Q>) -> Result<Vec<A>, NotAnswered> {
        match self.runtime.spawn((self.ask)(questions)).await {
            Ok(answers) => answers.map_err(|error| NotAnswered::Failed(Arc::new(error))),
            Err(ended) => {
                tracing::error!(error = %ended, "a statement ended without an answer");
                Err(NotAnswered::Lost)
            }
        }
    }
}
