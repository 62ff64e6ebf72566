//! The store, and whether it answers.

use std::sync::Arc;

use store::{Store, StoreError};

use crate::health::Health;

/// The store as all parts of a worker see it. That it went away is said once, and that it is back
/// once, however many loops meet it.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    store: Arc<dyn Store>,
    health: Health,
}

impl Database {
    pub(crate) fn new(store: Arc<dyn Store>, health: Health) -> Self {
        Self { store, health }
    }

    /// What the worker's progress is told to.
    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// The store. What it answers goes through [`Database::noted`].
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Passes an answer on, and takes from it whether the database is there.
    pub(crate) fn noted<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        match &answer {
            Err(error @ StoreError::Unavailable { .. }) => {
                if self.health.is_away(true) {
                    tracing::error!(
                        error = error.chain(),
                        "the database is away; trying again until it is back"
                    );
                }
            }
            _ => {
                if self.health.is_away(false) {
                    tracing::info!("the database is back");
                }
            }
        }
        answer
    }
}
