//! What a check is.

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::ground::Ground;

/// A promise that can be raced.
///
/// The guard and its control are judged alike: both answer a [`Round`] that was measured against the
/// same expectation.
#[async_trait]
pub(crate) trait Check: Send {
    /// What `--only` calls it.
    fn name(&self) -> &'static str;

    /// Its number in `docs/GUARANTEES.md`.
    fn guarantee(&self) -> &'static str;

    /// What one round does, in a sentence.
    fn tried(&self, ground: &Ground) -> String;

    /// One race through the product's own statement.
    async fn round(&mut self, ground: &Ground) -> anyhow::Result<Round>;

    /// What the naive form does, in a sentence.
    fn naive(&self) -> &'static str;

    /// The same race through the naive form, with a barrier between its read and its write.
    async fn control(&mut self, ground: &Ground) -> anyhow::Result<Round>;
}

/// What a race left behind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Round {
    /// What must be so.
    pub(crate) expected: String,
    /// What is so.
    pub(crate) observed: String,
    /// Whether the promise was kept.
    pub(crate) holds: bool,
    /// Further fields of the check's JSON object.
    pub(crate) fields: Map<String, Value>,
}

impl Round {
    /// Kept if and only if both are the same.
    pub(crate) fn of(expected: impl Into<String>, observed: impl Into<String>) -> Self {
        let (expected, observed) = (expected.into(), observed.into());
        let holds = expected == observed;
        Self { expected, observed, holds, fields: Map::new() }
    }
}
