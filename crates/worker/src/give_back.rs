//! Claims that were not sent go back, in batches: no lapse, no attempt, the old due time.

use store::delivery::HeldClaim;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::database::Database;

/// How many claims one statement gives back, and how many wait for it.
const BATCH_MAX: usize = 128;

/// The way back. What it was handed is given back, or left to its lease if the worker is abandoned.
#[derive(Debug, Clone)]
pub(crate) struct GiveBack {
    queue: mpsc::Sender<HeldClaim>,
}

impl GiveBack {
    /// A way back and the task that must run behind it. The task ends when the last clone of the
    /// way is dropped and all is given back, or with `abandon`.
    pub(crate) fn new(
        database: Database,
        abandon: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (queue, claims) = mpsc::channel(BATCH_MAX);
        (Self { queue }, run(database, claims, abandon))
    }

    /// Hands a claim over. Waits while the queue is full.
    pub(crate) async fn add(&self, claim: HeldClaim) {
        if self.queue.send(claim).await.is_err() {
            tracing::warn!(
                delivery.id = %claim.delivery,
                "an unsent claim was not given back; its lease ends it"
            );
        }
    }
}

async fn run(
    database: Database,
    mut claims: mpsc::Receiver<HeldClaim>,
    abandon: CancellationToken,
) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let all = async {
        while claims.recv_many(&mut batch, BATCH_MAX).await > 0 {
            give_back(&database, &batch).await;
            batch.clear();
        }
    };
    if abandon.run_until_cancelled(all).await.is_none() {
        let count = batch.len() + claims.len();
        if count > 0 {
            tracing::warn!(count, "unsent claims were not given back; their leases end them");
        }
    }
}

async fn give_back(database: &Database, batch: &[HeldClaim]) {
    let mut backoff = Backoff::of_a_record();
    loop {
        match database.noted(database.store().give_back(batch).await) {
            Ok(held) => {
                let (count, superseded) = (held.len(), batch.len().saturating_sub(held.len()));
                tracing::debug!(count, superseded, "unsent claims were given back");
                return;
            }
            Err(error) if error.is_transient() => backoff.wait().await,
            Err(error) => {
                let (count, error) = (batch.len(), error.chain());
                tracing::error!(count, error, "unsent claims cannot be given back");
                return;
            }
        }
    }
}
