//! Tells workers that something is due: at once when quiet, and at most once in 5 ms when busy.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::id::EndpointKey;
use store::Store;
use store::wake_up::NAMED_MAX;
use tokio::sync::mpsc;

/// The shortest time between two wake-ups.
const GAP: Duration = Duration::from_millis(2);

/// Wakes workers. Cheap to call after every commit; a clone is the same waker.
///
/// What is told within one gap is told once. That it cannot be told is logged once, and costs nothing
/// but time: workers poll as well.
#[derive(Debug, Clone)]
pub struct Waker {
    /// Room for one: a wake-up that is about to go out stands for all that came before it.
    pending: mpsc::Sender<()>,
    due: Arc<Mutex<Due>>,
}

/// What the next wake-up tells of.
#[derive(Debug, Default)]
struct Due {
    endpoints: HashSet<EndpointKey>,
    /// Anywhere, or at more endpoints than can be named.
    unnamed: bool,
}

impl Waker {
    /// Must be called inside the Tokio runtime that the store's connections belong to.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        let (pending, asked) = mpsc::channel(1);
        let due = Arc::default();
        tokio::spawn(tell(store, asked, Arc::clone(&due)));
        Self { pending, due }
    }

    /// Something that was committed is due at these endpoints. Returns at once.
    pub fn wake(&self, endpoints: impl IntoIterator<Item = EndpointKey>) {
        self.due().add(endpoints);
        // Full: one is pending. Closed: the process ends.
        let _ = self.pending.try_send(());
    }

    /// The same, at an endpoint that is not known here.
    pub fn wake_to_look(&self) {
        self.due().unnamed = true;
        let _ = self.pending.try_send(());
    }

    fn due(&self) -> MutexGuard<'_, Due> {
        // Nothing in there panics half way.
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Due {
    fn add(&mut self, endpoints: impl IntoIterator<Item = EndpointKey>) {
        self.endpoints.extend(endpoints);
        if self.endpoints.len() > NAMED_MAX {
            self.endpoints.clear();
            self.unnamed = true;
        }
    }

    /// What to tell, if anything: no endpoints stand for anywhere.
    fn take(&mut self) -> Option<Vec<EndpointKey>> {
        let due = std::mem::take(self);
        let named = due.endpoints.into_iter().collect::<Vec<_>>();
        if due.unnamed { Some(Vec::new()) } else { Some(named).filter(|named| !named.is_empty()) }
    }
}

async fn tell(store: Arc<dyn Store>, mut asked: mpsc::Receiver<()>, due: Arc<Mutex<Due>>) {
    let mut is_failing = false;
    while asked.recv().await.is_some() {
        let due = due.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(endpoints) = due else { continue };
        match store.notify_due(&endpoints).await {
            Ok(()) => {
                if std::mem::take(&mut is_failing) {
                    tracing::info!("workers are woken again");
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut is_failing, true) {
                    let error = error.chain();
                    tracing::warn!(
                        error,
                        "workers cannot be woken; they find what is due by polling"
                    );
                }
            }
        }
        tokio::time::sleep(GAP).await;
    }
}
