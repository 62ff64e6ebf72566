//! The store, and whether it answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::{Store, StoreError};

/// The store as all parts of a worker see it. That it went away is said once, and that it is back
/// once, however many loops meet it.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    store: Arc<dyn Store>,
    away: Arc<AtomicBool>,
}

impl Database {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, away: Arc::new(AtomicBool::new(false)) }
    }

    /// The store. What it answers goes through [`Database::noted`].
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Passes an answer on, and takes from it whether the database is there.
    pub(crate) fn noted<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        match &answer {
            Err(error @ StoreError::Unavailable { .. }) => {
                if !self.away.swap(true, Ordering::Relaxed) {
                    tracing::error!(
                        error = error.chain(),
                        "the database is away; trying again until it is back"
                    );
                }
            }
            _ => {
                if self.away.swap(false, Ordering::Relaxed) {
                    tracing::info!("the database is back");
                }
            }
        }
        answer
    }
}
