//! What a worker counts of its attempts.

use std::time::Duration;

use domain::delivery::{FailureReason, Outcome, Verdict};
use process::metrics;
use store::delivery::Recording;

/// Shows the counters before anything happened, so that the first time is a rise from 0.
pub(crate) fn begin() {
    for metric in
        [metrics::DELIVERED, metrics::RETRIES, metrics::LATE, metrics::UNRECORDED, metrics::LAPSES]
    {
        metric.add(0);
    }
    for reason in FailureReason::ALL {
        metrics::FAILED.add_with("reason", reason.as_str(), 0);
    }
    metrics::IN_FLIGHT.set(0);
}

/// Counts an attempt, and what it made of its delivery. A result that is recorded twice, since the answer
/// to the first time was lost, comes here once.
pub(crate) fn attempt(
    outcome: &Outcome,
    verdict: Verdict,
    recording: Option<Recording>,
    took: Duration,
) {
    metrics::ATTEMPTS.add_with("outcome", class_of(outcome), 1);
    metrics::ATTEMPT_SECONDS.took(took);
    match recording {
        Some(Recording::Fenced(_) | Recording::Repeated(_)) => match verdict {
            Verdict::Delivered => metrics::DELIVERED.add(1),
            Verdict::Failed { reason } => metrics::FAILED.add_with("reason", reason.as_str(), 1),
            Verdict::Retry { .. } => metrics::RETRIES.add(1),
        },
        Some(Recording::Late(_)) => metrics::LATE.add(1),
        Some(Recording::Gone) | None => {}
    }
}

/// An outcome as a label: a status only by its class, of which there are few.
fn class_of(outcome: &Outcome) -> &'static str {
    match outcome.status() {
        Some(200..=299) => "2xx",
        Some(300..=399) => "3xx",
        Some(400..=499) => "4xx",
        Some(500..=599) => "5xx",
        Some(_) => "other",
        None => outcome.as_str(),
    }
}
