//! What an outcome means: the one place where a retry is decided.

use std::time::Duration;

use super::FailureReason;
use super::outcome::{Failure, Outcome};
use super::retry::{RETRY_AFTER_MAX, RetrySchedule, jittered};
use crate::endpoint::{DisabledCause, EndpointSettings};

/// What the store does with the delivery. Durations, never instants: the database adds its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The receiver has it.
    Delivered,
    /// Try again after this long.
    Retry {
        /// From the moment the result is recorded.
        after: Duration,
    },
    /// Try no more, until somebody replays it.
    Failed {
        /// Why.
        reason: FailureReason,
    },
}

/// A verdict, and what it means for the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// What becomes of the delivery.
    pub verdict: Verdict,
    /// Set if the endpoint has to be disabled as well.
    pub disable_endpoint: Option<DisabledCause>,
}

/// What an endpoint's settings say about retries.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy<'a> {
    /// The waits between attempts.
    pub schedule: &'a RetrySchedule,
    /// The shortest wait after an answer that says "overloaded".
    pub overload_floor: Duration,
    /// Statuses after which nothing is tried again.
    pub final_statuses: &'a [u16],
}

impl<'a> From<&'a EndpointSettings> for RetryPolicy<'a> {
    fn from(settings: &'a EndpointSettings) -> Self {
        Self {
            schedule: settings.retry_schedule(),
            overload_floor: settings.overload_floor(),
            final_statuses: settings.final_statuses(),
        }
    }
}

/// Decides what the outcome of an attempt means.
///
/// `cycle_attempts` is the count before this attempt, as the claim answered it. `draw` is a random
/// number from `[0, 1)` for the jitter.
///
/// * Any 2xx head: delivered, whatever its body does afterwards.
/// * 410: failed, and the endpoint is disabled (Standard Webhooks, "Delivery success and failure").
/// * A status that the endpoint lists as final: failed.
/// * 429, 502, 503, 504 and a time-out after the connection stood: retry, not before the overload
///   floor, and not before `Retry-After` (up to 24 h).
/// * Everything else, 3xx included: retry by the schedule.
/// * The cycle is spent: failed.
#[must_use]
pub fn decide(
    cycle_attempts: u32,
    outcome: &Outcome,
    policy: RetryPolicy<'_>,
    draw: f64,
) -> Decision {
    let failed = |reason| Decision { verdict: Verdict::Failed { reason }, disable_endpoint: None };
    let asked = match outcome {
        Outcome::Answered { status: 200..=299, .. } => {
            return Decision { verdict: Verdict::Delivered, disable_endpoint: None };
        }
        Outcome::Answered { status: 410, .. } => {
            return Decision {
                disable_endpoint: Some(DisabledCause::Gone),
                ..failed(FailureReason::Gone)
            };
        }
        Outcome::Answered { status, .. } if policy.final_statuses.contains(status) => {
            return failed(FailureReason::FinalStatus);
        }
        Outcome::Answered { status: 429 | 502..=504, retry_after } => {
            let asked = retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
            asked.max(policy.overload_floor)
        }
        Outcome::Unanswered(Failure::TimedOut) => policy.overload_floor,
        Outcome::Answered { .. } | Outcome::Unanswered(_) => Duration::ZERO,
    };
    match policy.schedule.delay_after(cycle_attempts.saturating_add(1)) {
        None => failed(FailureReason::AttemptsExhausted),
        Some(delay) => Decision {
            verdict: Verdict::Retry { after: jittered(delay, draw).max(asked) },
            disable_endpoint: None,
        },
    }
}
