//! Where contestants wait for one another.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long one waits for the others. Who never comes has failed, and its error says more.
const PATIENCE: Duration = Duration::from_secs(30);

/// A place in the work of contestants that all reach before any goes on.
#[derive(Debug, Clone)]
pub(crate) struct Rendezvous(Arc<Barrier>);

impl Rendezvous {
    pub(crate) fn of(contestants: usize) -> Self {
        Self(Arc::new(Barrier::new(contestants)))
    }

    pub(crate) async fn meet(&self) -> anyhow::Result<()> {
        timeout(PATIENCE, self.0.wait()).await.context("not all contestants came this far")?;
        Ok(())
    }
}

/// Runs `run` once for each contestant, each on a task of its own, all released at once; the answers in
/// the order of the contestants.
///
/// A contestant is what has to be ready before the start, a connection most often: opening one inside
/// the race would stagger it.
pub(crate) async fn race<C, T, R>(
    contestants: impl IntoIterator<Item = C>,
    run: impl Fn(usize, C) -> R,
) -> anyhow::Result<Vec<T>>
where
    R: Future<Output = anyhow::Result<T>> + Send + 'static,
    T: Send + 'static,
{
    let contestants: Vec<C> = contestants.into_iter().collect();
    let start = Rendezvous::of(contestants.len());
    let mut running = JoinSet::new();
    for (place, contestant) in contestants.into_iter().enumerate() {
        let start = start.clone();
        let work = run(place, contestant);
        running.spawn(async move {
            start.meet().await?;
            anyhow::Ok((place, work.await?))
        });
    }
    let mut answers = Vec::new();
    while let Some(ended) = running.join_next().await {
        answers.push(ended.context("a contestant panicked")??);
    }
    answers.sort_by_key(|(place, _)| *place);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}
