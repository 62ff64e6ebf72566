//! A worker from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use process::metrics;
use store::{Store, StoreError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Settings;
use crate::counting;
use crate::database::Database;
use crate::deliver::Deliverer;
use crate::dispatch::{AtCap, Dispatcher};
use crate::give_back::GiveBack;
use crate::guard::guarded;
use crate::health::Health;
use crate::listen;
use crate::load::Loader;
use crate::maintain::Maintainer;
use crate::record::Recorder;
use crate::send::Sender;

/// How long those that were cut off at the stop deadline have to say so.
const CUT_OFF: Duration = Duration::from_secs(1);

/// A worker whose loops run.
#[derive(Debug)]
pub struct RunningWorker {
    task: JoinHandle<anyhow::Result<()>>,
    started: oneshot::Receiver<()>,
    health: Health,
}

impl RunningWorker {
    /// Waits until the worker claims, or waits for a database that cannot be reached for now. Answers
    /// whether it does: if not, [`finished`](Self::finished) says why.
    pub async fn started(&mut self) -> bool {
        (&mut self.started).await.is_ok()
    }

    /// Whether it makes progress, for whoever asks.
    #[must_use]
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Waits for its end: after the token was cancelled, or when the schema of the database turns out
    /// to be one that it cannot use.
    ///
    /// # Errors
    /// The schema, or a fault of the worker's own.
    pub async fn finished(self) -> anyhow::Result<()> {
        self.task.await.context("the worker panicked")?
    }
}

/// Starts a worker on the current runtime. Cancelling `stop` ends it: it claims no more, gives back
/// what it has not sent, and waits for what it has, up to [`Settings::stop_deadline`].
///
/// Settings outside their limits are moved to the nearest within.
#[must_use]
pub fn start(settings: Settings, store: Arc<dyn Store>, stop: CancellationToken) -> RunningWorker {
    let settings = Arc::new(settings.within_limits());
    metrics::install();
    counting::begin();
    metrics::PLACES.set(settings.concurrency.into());
    let (tell_started, started) = oneshot::channel();
    let health = Health::new(settings.stalled_after);
    let database = Database::new(store, health.clone());
    let task = tokio::spawn(run(settings, database, stop, tell_started));
    RunningWorker { task, started, health }
}

async fn run(
    settings: Arc<Settings>,
    database: Database,
    stop: CancellationToken,
    started: oneshot::Sender<()>,
) -> anyhow::Result<()> {
    // The worker's own end stops its parts, and not what else hangs on the token.
    let stop = stop.child_token();
    let abandon = CancellationToken::new();
    let (recorder, recording) = Recorder::new(
        database.clone(),
        settings.record_batch_max,
        settings.record_queue_max,
        abandon.clone(),
    );
    let (give_back, giving_back) = GiveBack::new(database.clone(), abandon.clone());
    // These end by themselves: the first two when the last delivery is done, upkeep with the stop.
    let flushes = TaskTracker::new();
    flushes.spawn(recording);
    flushes.spawn(giving_back);

    let at_cap = Arc::new(AtCap::default());
    let deliverer = Arc::new(Deliverer {
        worker: settings.name.clone(),
        sender: Sender::new(settings.address_policy.clone(), settings.dns_deadline)?,
        database: database.clone(),
        recorder,
        give_back,
        at_cap: Arc::clone(&at_cap),
        stop: stop.clone(),
        abandon: abandon.clone(),
    });
    let tasks = TaskTracker::new();
    let memory = settings.payload_memory_bytes;
    let loader = Loader::new(database.clone(), deliverer, tasks.clone(), memory);
    let dispatcher = Dispatcher::new(
        Arc::clone(&settings),
        database.clone(),
        Arc::new(loader),
        at_cap,
        stop.clone(),
    );

    let maintainer =
        Maintainer::new(database.clone(), settings.name.clone(), stop.clone(), abandon.clone());
    flushes.spawn(async move {
        if let Err(panic) = guarded(maintainer.run()).await {
            tracing::error!(panic, "the upkeep of this worker has ended");
        }
    });
    tasks.spawn(metrics::keep(stop.clone()));
    tasks.spawn(listen::listen(database.clone(), stop.clone()));
    let mut dispatching = tokio::spawn(dispatcher.run(started));
    let early = tokio::select! {
        ended = &mut dispatching => Some(ended),
        () = stop.cancelled() => None,
    };
    stop.cancel();
    let drain = async {
        // The last claim's answer is waited for: it may hold deliveries, which are given back.
        let ended = match early {
            Some(ended) => ended,
            None => dispatching.await,
        };
        tasks.close();
        tasks.wait().await;
        flushes.close();
        flushes.wait().await;
        ended
    };
    end(drain, &settings, &abandon).await
}

/// Waits for what is under way, and abandons what is not done at the stop deadline.
async fn end(
    drain: impl Future<Output = Result<Result<(), StoreError>, tokio::task::JoinError>>,
    settings: &Settings,
    abandon: &CancellationToken,
) -> anyhow::Result<()> {
    tokio::pin!(drain);
    let deadline = settings.stop_deadline;
    let mut drained = tokio::time::timeout(deadline, &mut drain).await.ok();
    if drained.is_none() {
        tracing::warn!(?deadline, "not all was done at the stop deadline");
        abandon.cancel();
        drained = tokio::time::timeout(CUT_OFF, &mut drain).await.ok();
    }
    // None if a claim hangs in the database: what it takes ends with its lease.
    if let Some(dispatched) = drained {
        dispatched.context("the dispatcher panicked")??;
    }
    tracing::info!(worker = settings.name, "the worker has ended");
    Ok(())
}
