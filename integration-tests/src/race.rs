//! Contestants that start at the same instant.

use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// Runs `run` once for each contestant, each on a task of its own, all released at once; the
/// results in the order of the contestants.
///
/// A contestant is whatever has to be ready before the start, most often a connection: opening one
/// inside the race would stagger it. On a runtime with one thread they interleave where they
/// await; a race between threads needs `#[tokio::test(flavor = "multi_thread")]`.
pub async fn race<C, T, R>(
    contestants: impl IntoIterator<Item = C>,
    run: impl Fn(usize, C) -> R,
) -> anyhow::Result<Vec<T>>
where
    R: Future<Output = anyhow::Result<T>> + Send + 'static,
    T: Send + 'static,
{
    let contestants: Vec<C> = contestants.into_iter().collect();
    let start = Arc::new(Barrier::new(contestants.len()));
    let mut running = JoinSet::new();
    for (place, contestant) in contestants.into_iter().enumerate() {
        let start = Arc::clone(&start);
        let work = run(place, contestant);
        running.spawn(async move {
            start.wait().await;
            (place, work.await)
        });
    }

    let mut results = Vec::new();
    while let Some(joined) = running.join_next().await {
        let (place, result) = joined.context("a contestant panicked")?;
        results.push((place, result.with_context(|| format!("contestant {place}"))?));
    }
    results.sort_by_key(|(place, _)| *place);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}
