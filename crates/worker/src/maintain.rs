//! Upkeep of the tables, by whichever worker leads.
//!
//! Every worker asks for the lead, one has it. The lease only avoids that all do the same work: each
//! step is right by itself, so a leader that was stalled and wakes up beside its successor does no
//! harm. A step is bounded; one that leaves something is taken again at once, after each of the
//! others has had its turn.

mod events;
mod task;

use std::time::Duration;

use domain::delivery::retry::jittered;
use process::metrics;
use store::StoreError;
use store::maintenance::Candidacy;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::task::{Progress, Task};
use crate::backoff::Backoff;
use crate::database::Database;

/// How long the lead is held, and how long after a leader's death nobody leads.
const LEASE: Duration = Duration::from_secs(30);
/// How often a leader renews it, and how often the others ask.
const RENEWAL: Duration = Duration::from_secs(10);
/// Between two steps while there is more to do: deliveries come first.
const PAUSE: Duration = Duration::from_millis(20);
/// After a step that met a lock, until it is taken again.
const CONTENDED: Duration = Duration::from_secs(5);

/// One worker's part in the upkeep.
#[derive(Debug)]
pub(crate) struct Maintainer {
    database: Database,
    holder: String,
    token: Uuid,
    stop: CancellationToken,
    abandon: CancellationToken,
    /// Until when it need not ask again. None if another leads.
    leads_until: Option<Instant>,
    /// Each task, and when it is due.
    tasks: Vec<(Task, Instant)>,
    progress: Progress,
}

impl Maintainer {
    /// `abandon` cuts off what does not end at the stop deadline.
    pub(crate) fn new(
        database: Database,
        holder: String,
        stop: CancellationToken,
        abandon: CancellationToken,
    ) -> Self {
        let now = Instant::now();
        Self {
            database,
            holder,
            token: store::new_id::uuid_now(),
            stop,
            abandon,
            leads_until: None,
            tasks: Task::ALL.map(|task| (task, now)).to_vec(),
            progress: Progress::default(),
        }
    }

    /// Runs until the worker stops, and then leaves the lead to another.
    pub(crate) async fn run(mut self) {
        let abandon = self.abandon.clone();
        abandon.run_until_cancelled(self.run_until_stop()).await;
    }

    async fn run_until_stop(&mut self) {
        let mut backoff = Backoff::of_a_loop();
        while !self.stop.is_cancelled() {
            let wait = match self.round().await {
                Ok(wait) => {
                    backoff.reset();
                    wait
                }
                // The dispatcher meets it too, says so, and ends the worker.
                Err(StoreError::SchemaOutdated { .. } | StoreError::SchemaTooNew { .. }) => return,
                Err(error) if error.is_transient() => backoff.next(fastrand::f64()),
                Err(error) => {
                    tracing::error!(
                        error = error.chain(),
                        "the lead of the upkeep is not to be had"
                    );
                    RENEWAL
                }
            };
            self.stop.run_until_cancelled(tokio::time::sleep(wait)).await;
        }
        tell_of_the_lead(false);
        if self.leads_until.is_some() {
            let resigned = self.database.store().resign(self.token).await;
            if let Err(error) = resigned {
                tracing::debug!(error = error.chain(), "the lead ends with its lease");
            }
        }
    }

    /// Takes each task that is due a step further, if this worker leads. Answers how long there is
    /// nothing to do then.
    async fn round(&mut self) -> Result<Duration, StoreError> {
        let Some(leads_until) = self.lead().await? else {
            return Ok(jittered(RENEWAL, fastrand::f64()));
        };
        let mut next = leads_until;
        for at in 0..self.tasks.len() {
            let Some((task, due)) = self.tasks.get(at).copied() else { break };
            let mut again = due;
            if due <= Instant::now() && Instant::now() < leads_until && !self.stop.is_cancelled() {
                again = Instant::now() + self.step(task).await?;
                if let Some((_, due)) = self.tasks.get_mut(at) {
                    *due = again;
                }
            }
            next = next.min(again);
        }
        Ok(next.saturating_duration_since(Instant::now()))
    }

    /// Takes the lead or keeps it. Answers until when that need not be asked again.
    async fn lead(&mut self) -> Result<Option<Instant>, StoreError> {
        let asked = Instant::now();
        if let Some(until) = self.leads_until.filter(|until| asked < *until) {
            return Ok(Some(until));
        }
        let candidacy = Candidacy { holder: &self.holder, token: self.token, lease: LEASE };
        let leads = self.database.noted(self.database.store().lead(&candidacy).await)?;
        match (leads, self.leads_until.is_some()) {
            (true, false) => {
                tracing::info!(worker = self.holder, "this worker does the upkeep");
                self.tasks.iter_mut().for_each(|(_, due)| *due = asked);
            }
            (false, true) => {
                tracing::warn!(worker = self.holder, "another worker does the upkeep now");
            }
            _ => {}
        }
        self.leads_until = leads.then(|| asked + RENEWAL);
        tell_of_the_lead(leads);
        Ok(self.leads_until)
    }

    /// Answers after how long the task is due again. An error is one that all tasks would meet.
    async fn step(&mut self, task: Task) -> Result<Duration, StoreError> {
        let step = self.progress.step(task, self.database.store()).await;
        match self.database.noted(step) {
            Ok(true) => Ok(PAUSE),
            Ok(false) => Ok(jittered(task.interval(), fastrand::f64())),
            Err(error @ StoreError::Unavailable { .. }) => Err(error),
            Err(error) if error.is_transient() => {
                tracing::debug!(task = task.as_str(), error = error.chain(), "upkeep met a lock");
                Ok(CONTENDED)
            }
            // Fails by itself and holds up no other.
            Err(error) => {
                let error = error.chain();
                tracing::error!(task = task.as_str(), error, "a part of the upkeep cannot be done");
                Ok(task.interval())
            }
        }
    }
}

/// What is due is told by one worker alone.
fn tell_of_the_lead(leads: bool) {
    metrics::UPKEEP.set(leads.into());
    if !leads {
        metrics::DUE.set(0);
        metrics::CIRCUITS_OPEN.set(0);
        metrics::DUE_OLDEST.set_seconds(Duration::ZERO);
    }
}
