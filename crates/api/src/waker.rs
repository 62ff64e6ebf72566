//! Tells workers that something is due: at once when quiet, and at most once in 5 ms when busy.

use std::sync::Arc;
use std::time::Duration;

use store::Store;
use tokio::sync::mpsc;

/// The shortest time between two wake-ups.
const GAP: Duration = Duration::from_millis(5);

/// Wakes workers. Cheap to call after every commit; a clone is the same waker.
///
/// What is told within one gap is told once. That it cannot be told is logged once, and costs nothing
/// but time: workers poll as well.
#[derive(Debug, Clone)]
pub struct Waker {
    /// Room for one: a wake-up that is about to go out stands for all that came before it.
    pending: mpsc::Sender<()>,
}

impl Waker {
    /// Must be called inside the Tokio runtime that the store's connections belong to.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        let (pending, asked) = mpsc::channel(1);
        tokio::spawn(tell(store, asked));
        Self { pending }
    }

    /// Something that was committed is due. Returns at once.
    pub fn wake(&self) {
        // Full: one is pending. Closed: the process ends.
        let _ = self.pending.try_send(());
    }
}

async fn tell(store: Arc<dyn Store>, mut asked: mpsc::Receiver<()>) {
    let mut is_failing = false;
    while asked.recv().await.is_some() {
        match store.notify_due().await {
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
