//! The recorder: results, in batches, until the database has them.
//!
//! What waits while one statement runs forms the next one; a lone result is not delayed. A result is
//! never dropped while the worker runs: an unreachable database is asked until it answers, the queue
//! fills, requests keep their places, and so the dispatcher claims less, and then nothing.

mod batch;

use std::collections::VecDeque;
use std::time::Duration;

use process::metrics;
use store::StoreError;
use store::delivery::{Recording, Report};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::batch::take_batch;
use crate::backoff::Backoff;
use crate::database::Database;

/// How many statements record at once: one, since two would only be smaller, and another beside one that
/// takes long or where it would be full.
const FLUSHES_MAX: usize = 2;

/// How long results wait for the statement under way.
const PATIENCE: Duration = Duration::from_millis(10);

/// Takes results and answers when they are recorded.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    queue: mpsc::Sender<Entry>,
}

/// A result that waits, and whom to tell.
#[derive(Debug)]
struct Entry {
    report: Report,
    told: oneshot::Sender<Recording>,
}

impl Recorder {
    /// A recorder and the task that must run behind it. The task ends when the last clone of the
    /// recorder is dropped and all is recorded, or with `abandon`.
    pub(crate) fn new(
        database: Database,
        batch_max: u16,
        queue_max: u16,
        abandon: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (queue, entries) = mpsc::channel(usize::from(queue_max.max(1)));
        let run = Run { database, batch_max: usize::from(batch_max.max(1)), abandon };
        (Self { queue }, run.all(entries))
    }

    /// Records a result. `None` if that was not possible, which is logged.
    pub(crate) async fn record(&self, report: Report) -> Option<Recording> {
        let (delivery, token, outcome) = (report.delivery, report.token, report.outcome.clone());
        let (told, answer) = oneshot::channel();
        let recording = match self.queue.send(Entry { report, told }).await {
            Ok(()) => answer.await.ok(),
            Err(_) => None,
        };
        if recording.is_none() {
            metrics::UNRECORDED.add(1);
            tracing::error!(
                delivery.id = %delivery,
                claim.token = %token,
                outcome = outcome.as_str(),
                status = outcome.status(),
                "a result was not recorded; the lease ends its claim, and it is sent again"
            );
        }
        recording
    }
}

/// What became of one report.
#[derive(Debug)]
enum Written {
    Recorded(Recording),
    /// Somebody holds a lock that it needs.
    Stuck,
    /// The database refuses it, alone as well.
    Refused,
}

/// How often a batch is tried while somebody holds a lock, before it is taken apart.
const CONTENDED_MAX: u32 = 2;

/// The task behind a recorder.
#[derive(Debug, Clone)]
struct Run {
    database: Database,
    batch_max: usize,
    abandon: CancellationToken,
}

impl Run {
    async fn all(self, mut entries: mpsc::Receiver<Entry>) {
        let mut waiting = VecDeque::new();
        let mut arrived = Vec::with_capacity(self.batch_max);
        let mut flushes = JoinSet::new();
        let mut is_open = true;
        let mut patient_until = Instant::now();
        while is_open || !waiting.is_empty() || !flushes.is_empty() {
            while !waiting.is_empty()
                && (flushes.is_empty()
                    || flushes.len() < FLUSHES_MAX
                        && (waiting.len() >= self.batch_max || Instant::now() >= patient_until))
            {
                patient_until = Instant::now() + PATIENCE;
                let batch =
                    take_batch(&mut waiting, self.batch_max, |it: &Entry| it.report.delivery);
                flushes.spawn(self.clone().flush(batch));
            }
            // While a full batch waits, the others wait in the queue, which has a bound.
            let room = self.batch_max.saturating_sub(waiting.len());
            tokio::select! {
                count = entries.recv_many(&mut arrived, room), if is_open && room > 0 => {
                    is_open = count > 0;
                    waiting.extend(arrived.drain(..));
                }
                Some(ended) = flushes.join_next(), if !flushes.is_empty() => {
                    match ended {
                        // Behind the others, which are not stuck.
                        Ok(stuck) => waiting.extend(stuck),
                        Err(error) => tracing::error!(%error, "recording a batch panicked"),
                    }
                }
                () = sleep_until(patient_until),
                    if !waiting.is_empty() && flushes.len() < FLUSHES_MAX => {}
                () = self.abandon.cancelled() => return,
            }
        }
    }

    /// Records a batch and tells each of its entries, unless the worker is abandoned before. Answers
    /// those that are stuck behind somebody's lock.
    async fn flush(self, batch: Vec<Entry>) -> Vec<Entry> {
        let (reports, told): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|entry| (entry.report, entry.told)).unzip();
        let written = self.abandon.run_until_cancelled(self.write(&reports)).await;
        let mut stuck = Vec::new();
        for ((report, told), written) in
            reports.into_iter().zip(told).zip(written.unwrap_or_default())
        {
            match written {
                // Nobody listens any more if the delivery's task panicked.
                Written::Recorded(recording) => drop(told.send(recording)),
                Written::Stuck => stuck.push(Entry { report, told }),
                Written::Refused => {}
            }
        }
        stuck
    }

    /// Records reports, in their order.
    async fn write(&self, reports: &[Report]) -> Vec<Written> {
        if let Ok(recordings) = self.write_once(reports).await {
            return recordings.into_iter().map(Written::Recorded).collect();
        }
        // One of them is at fault, which must not cost the others their results.
        let mut written = Vec::with_capacity(reports.len());
        for report in reports.chunks(1) {
            let delivery = report.first().map(|report| report.delivery.to_string());
            written.push(match self.write_once(report).await {
                Ok(recorded) => {
                    recorded.first().map_or(Written::Refused, |r| Written::Recorded(*r))
                }
                Err(StoreError::Contended { .. }) => {
                    tracing::warn!(delivery.id = delivery, "a result waits behind a lock");
                    Written::Stuck
                }
                Err(error) => {
                    let error = error.chain();
                    tracing::error!(delivery.id = delivery, error, "a result cannot be recorded");
                    Written::Refused
                }
            });
        }
        written
    }

    /// Records reports in one statement, as often as it takes while the database is away, and twice
    /// while somebody holds a lock.
    async fn write_once(&self, reports: &[Report]) -> Result<Vec<Recording>, StoreError> {
        let mut backoff = Backoff::of_a_record();
        let mut contended = 0;
        loop {
            let began = Instant::now();
            let written = self.database.store().record_attempts(reports).await;
            if written.is_ok() {
                metrics::RECORD_SECONDS.took(began.elapsed());
                metrics::RECORD_BATCH.sized(reports.len());
                self.database.health().progressed();
            }
            match self.database.noted(written) {
                Err(error @ StoreError::Contended { .. }) => {
                    contended += 1;
                    if contended == CONTENDED_MAX {
                        return Err(error);
                    }
                    backoff.wait().await;
                }
                Err(error) if error.is_transient() => backoff.wait().await,
                answer => return answer,
            }
        }
    }
}
