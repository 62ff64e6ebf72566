//! How endpoints do: what their results have come to.
//!
//! It is counted where results are recorded and shown beside the configuration, of which it is no part:
//! it changes without a new version.

use async_trait::async_trait;
use domain::endpoint::Failing;
use domain::endpoint::circuit::Circuit;
use domain::id::EndpointKey;
use time::OffsetDateTime;

use crate::StoreError;

/// How one endpoint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Life {
    /// When it was disabled; none while it is enabled.
    pub disabled_at: Option<OffsetDateTime>,
    /// The run of failures that will disable it if it goes on; none if its last result was a success, or
    /// a day has passed without a failure.
    pub failing: Option<Failing>,
    /// Whether deliveries are sent, and what that was decided by.
    pub circuit: Circuit,
    /// Whether the time is over for which an open circuit was to be so.
    pub half_open: bool,
}

impl Life {
    /// What of it is still true at `now`.
    pub(crate) fn as_of(self, now: OffsetDateTime) -> Self {
        let failing = self.failing.filter(|run| run.goes_on(now) || run.is_over(now));
        let half_open = matches!(self.circuit, Circuit::Open(opening)
            if opening.probe.is_some() || opening.until <= now);
        Self { failing, half_open, ..self }
    }
}

/// Reads of how endpoints do.
#[async_trait]
pub trait Lives {
    /// Of each of these endpoints, in their order. One that there is not answers the default.
    async fn read_lives(&self, endpoints: &[EndpointKey]) -> Result<Vec<Life>, StoreError>;
}
