//! Between the claim and the requests: where each delivery goes, and its bytes.
//!
//! One statement reads the targets of a claim, and one for each few megabytes their payloads. How
//! many bytes are in memory at once is bounded for the whole worker; who finds no room waits here,
//! and what then has too little of its lease left is given back.

mod chunk;
mod read;

use std::sync::Arc;

use store::endpoint::Target;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use crate::claim::{Claim, Claimed};
use crate::database::Database;
use crate::deliver::{Contents, Deliverer, Job};
use crate::guard::guarded;

/// Reads what claims need and starts their deliveries.
#[derive(Debug)]
pub(crate) struct Loader {
    database: Database,
    deliverer: Arc<Deliverer>,
    tasks: TaskTracker,
    memory: Arc<Semaphore>,
    memory_bytes: u32,
}

/// A delivery between its claim and its request.
#[derive(Debug)]
struct Loading {
    delivery: Claimed,
    /// Where it goes, or why that cannot be read.
    target: Result<Arc<Target>, String>,
}

impl Loader {
    /// `tasks` tracks all loads and all deliveries.
    pub(crate) fn new(
        database: Database,
        deliverer: Arc<Deliverer>,
        tasks: TaskTracker,
        memory_bytes: u32,
    ) -> Self {
        let permits = usize::try_from(memory_bytes).unwrap_or(Semaphore::MAX_PERMITS);
        Self { database, deliverer, tasks, memory: Arc::new(Semaphore::new(permits)), memory_bytes }
    }

    /// How many bytes of payloads have room now.
    pub(crate) fn free_memory(&self) -> usize {
        self.memory.available_permits()
    }

    /// Loads a claim in a task of its own. `places` holds a place for each delivery, `turn` that of
    /// the load itself.
    pub(crate) fn start(
        self: &Arc<Self>,
        claim: Claim,
        claimed: Vec<Claimed>,
        places: OwnedSemaphorePermit,
        turn: OwnedSemaphorePermit,
    ) {
        let loader = Arc::clone(self);
        self.tasks.spawn(async move {
            if let Err(panic) = guarded(loader.load(claim, claimed, places)).await {
                let token = claim.token();
                tracing::error!(claim.token = %token, panic, "loading a claim panicked");
            }
            drop(turn);
        });
    }

    async fn load(&self, claim: Claim, claimed: Vec<Claimed>, mut places: OwnedSemaphorePermit) {
        let Ok(targets) = self.read_targets(claim, &claimed).await else {
            self.give_back(claim, claimed).await;
            return;
        };
        let mut loading = Vec::with_capacity(claimed.len());
        let mut gone = Vec::new();
        for delivery in claimed {
            match targets.get(&delivery.endpoint).cloned() {
                Some(target) => loading.push(Loading { delivery, target }),
                None => gone.push(delivery),
            }
        }
        // Their endpoint was deleted since the claim: what becomes of them is not the worker's part.
        self.give_back(claim, gone).await;

        let lengths: Vec<u32> = loading.iter().map(|it| it.delivery.payload_bytes).collect();
        let mut rest = loading.into_iter();
        for count in chunk::counts(&lengths, self.memory_bytes) {
            let chunk: Vec<Loading> = rest.by_ref().take(count).collect();
            if let Err(unsent) = self.load_chunk(claim, chunk, &mut places).await {
                let unsent = unsent.into_iter().chain(rest).map(|it| it.delivery);
                self.give_back(claim, unsent).await;
                return;
            }
        }
    }

    /// Reads the payloads of a chunk and starts its deliveries; or answers the chunk, unsent.
    async fn load_chunk(
        &self,
        claim: Claim,
        chunk: Vec<Loading>,
        places: &mut OwnedSemaphorePermit,
    ) -> Result<(), Vec<Loading>> {
        let bytes = chunk.iter().map(|it| it.delivery.payload_bytes);
        let bytes = bytes.fold(0, u32::saturating_add).min(self.memory_bytes);
        let memory = Arc::clone(&self.memory).acquire_many_owned(bytes);
        let Some(Ok(mut memory)) = self.deliverer.until_stop(memory).await else {
            return Err(chunk);
        };
        let Ok(mut payloads) = self.read_payloads(claim, &chunk).await else {
            return Err(chunk);
        };
        let mut unplaced = Vec::new();
        for Loading { mut delivery, target } in chunk {
            let share = usize::try_from(delivery.payload_bytes).unwrap_or(usize::MAX);
            let share = share.min(memory.num_permits());
            let (Some(place), Some(memory)) = (places.split(1), memory.split(share)) else {
                unplaced.push(delivery);
                continue;
            };
            let claimed = delivery.row.payload.take().map(Ok);
            let read = claimed.or_else(|| payloads.remove(&delivery.submission));
            let contents = match (target, read) {
                (Ok(target), Some(Ok(payload))) => Contents::Ready { target, payload },
                (Ok(target), Some(Err(detail))) => {
                    Contents::Unsendable { target: Some(target), detail }
                }
                (Ok(target), None) => {
                    let detail = "its payload is not in the database any more".to_owned();
                    Contents::Unsendable { target: Some(target), detail }
                }
                (Err(detail), _) => Contents::Unsendable { target: None, detail },
            };
            let job = Job { claim, delivery, contents, place, memory };
            self.tasks.spawn(Arc::clone(&self.deliverer).run(job));
        }
        // There is a place for each: a claim takes no more than it was asked for.
        self.give_back(claim, unplaced).await;
        Ok(())
    }

    async fn give_back(&self, claim: Claim, claimed: impl IntoIterator<Item = Claimed>) {
        for delivery in claimed {
            self.deliverer.give_back(claim, &delivery).await;
        }
    }
}
