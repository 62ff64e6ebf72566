//! What a process counts and measures, in Prometheus's text form.
//!
//! Each metric stands here once, with its help; `docs/OPERATIONS.md` repeats the table, and a test compares
//! it with what running processes show. A label's values are a fixed few: no id, address, event type or
//! path that a caller chooses ever becomes one.

use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What kind it is.
    pub kind: Kind,
    /// What it says.
    pub help: &'static str,
}

/// Kinds of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// How long something took, in seconds.
    Seconds,
    /// How many were in a batch.
    Sizes,
}

/// Declares the metrics, and the list of all of them.
macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal $help:literal;)+) => {
        $(/// The metric of that name: its help says what it tells.
        pub const $constant: Metric = Metric { name: $name, kind: Kind::$kind, help: $help };)+

        /// Every metric, in the order of the documents.
        pub const ALL: &[Metric] = &[$($constant),+];
    };
}

metrics! {
    SUBMISSIONS: Counter "fencepost_submissions_total"
        "Submissions by what became of them: accepted, replayed, conflicted, key_in_progress, endpoint_missing, failed.";
    ACCEPT_SECONDS: Seconds "fencepost_accept_seconds" "How long a flush of submissions took to be stored.";
    ACCEPT_BATCH: Sizes "fencepost_accept_batch_size" "How many submissions a flush held.";
    REQUESTS: Counter "fencepost_requests_total" "Requests to the api, by route and class of status.";
    REQUEST_SECONDS: Seconds "fencepost_request_seconds" "How long a request to the api took, by route.";
    ATTEMPTS: Counter "fencepost_attempts_total"
        "Attempts by outcome: 2xx, 3xx, 4xx, 5xx, or the name of a failure without an answer.";
    ATTEMPT_SECONDS: Seconds "fencepost_attempt_seconds" "How long an attempt took, from its start to its answer.";
    DELIVERED: Counter "fencepost_delivered_total" "Deliveries that were delivered.";
    FAILED: Counter "fencepost_failed_total" "Deliveries that failed for good, by reason.";
    RETRIES: Counter "fencepost_retries_total" "Attempts after which a delivery waits for its next one.";
    LATE: Counter "fencepost_late_results_total" "Results of claims that were superseded before.";
    UNRECORDED: Counter "fencepost_unrecorded_results_total"
        "Results that could not be recorded: the request went out, and goes out again.";
    LAPSES: Counter "fencepost_lapses_total" "Claims that ended without a report, as later claims found them.";
    CLAIM_SECONDS: Seconds "fencepost_claim_seconds" "How long a claim took.";
    CLAIM_BATCH: Sizes "fencepost_claim_batch_size" "How many deliveries a claim took.";
    RECORD_SECONDS: Seconds "fencepost_record_seconds" "How long a batch of results took to be recorded.";
    RECORD_BATCH: Sizes "fencepost_record_batch_size" "How many results a batch held.";
    IN_FLIGHT: Gauge "fencepost_in_flight" "Deliveries that this worker has: from the claim until the result is recorded.";
    PLACES: Gauge "fencepost_places" "How many deliveries this worker may have.";
    DUE: Gauge "fencepost_due"
        "Due deliveries at open endpoints, at most 100 counted of each. Told by the worker that does the upkeep, 0 by the others.";
    DUE_OLDEST: Gauge "fencepost_due_oldest_seconds"
        "For how long the oldest of them has been due. Told by the worker that does the upkeep, 0 by the others.";
    CIRCUITS_OPEN: Gauge "fencepost_circuits_open"
        "Endpoints whose circuit is open because they fail. Told by the worker that does the upkeep, 0 by the others.";
    UPKEEP: Gauge "fencepost_upkeep" "1 while this worker does the upkeep.";
    DATABASE_AWAY: Gauge "fencepost_database_away" "1 while the database does not answer this worker.";
}

/// Upper bounds of seconds: from a statement on an idle machine to the longest deadline.
const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// Upper bounds of sizes of batches.
const SIZES: &[f64] = &[0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
/// How often what was measured is taken together, also when nobody asks for it.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Counts from now on, for all of this process. A program that has a recorder of its own keeps it, and
/// [`render`] has nothing to say then.
pub fn install() {
    HANDLE.get_or_init(|| {
        let mut builder = PrometheusBuilder::new();
        for metric in ALL {
            let bounds = match metric.kind {
                Kind::Seconds => SECONDS,
                Kind::Sizes => SIZES,
                Kind::Counter | Kind::Gauge => continue,
            };
            let matcher = Matcher::Full(metric.name.to_owned());
            // Fails only for an empty list.
            builder = builder.set_buckets_for_metric(matcher, bounds).ok()?;
        }
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).ok()?;
        describe();
        Some(handle)
    });
}

fn describe() {
    for metric in ALL {
        match metric.kind {
            Kind::Counter => metrics::describe_counter!(metric.name, metric.help),
            Kind::Gauge => metrics::describe_gauge!(metric.name, metric.help),
            Kind::Seconds | Kind::Sizes => metrics::describe_histogram!(metric.name, metric.help),
        }
    }
}

/// All that was counted, as Prometheus reads it.
#[must_use]
pub fn render() -> Option<String> {
    HANDLE.get().and_then(Option::as_ref).map(PrometheusHandle::render)
}

/// The media type of [`render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Takes together what was measured, until the stop: else it would grow while nobody asks for it.
pub async fn keep(stop: CancellationToken) {
    let Some(handle) = HANDLE.get().and_then(Option::as_ref) else { return };
    while stop.run_until_cancelled(tokio::time::sleep(UPKEEP_INTERVAL)).await.is_some() {
        handle.run_upkeep();
    }
}

impl Metric {
    /// Adds to a counter.
    pub fn add(self, count: u64) {
        metrics::counter!(self.name).increment(count);
    }

    /// Adds to a counter of that label.
    pub fn add_with(self, label: &'static str, value: &'static str, count: u64) {
        metrics::counter!(self.name, label => value).increment(count);
    }

    /// Sets a gauge.
    #[expect(clippy::cast_precision_loss, reason = "it is shown to people")]
    pub fn set(self, value: u64) {
        metrics::gauge!(self.name).set(value as f64);
    }

    /// Raises a gauge by 1.
    pub fn up(self) {
        metrics::gauge!(self.name).increment(1.0);
    }

    /// Lowers a gauge by 1.
    pub fn down(self) {
        metrics::gauge!(self.name).decrement(1.0);
    }

    /// Sets a gauge of seconds.
    pub fn set_seconds(self, value: Duration) {
        metrics::gauge!(self.name).set(value.as_secs_f64());
    }

    /// Notes how long something took.
    pub fn took(self, duration: Duration) {
        metrics::histogram!(self.name).record(duration.as_secs_f64());
    }

    /// Adds 1 to a counter of requests. The caller takes the route from the table of calls.
    pub fn add_of_route(self, route: &str, status: &'static str) {
        metrics::counter!(self.name, "route" => route.to_owned(), "status" => status).increment(1);
    }

    /// Notes how long a request took.
    pub fn took_of_route(self, route: String, duration: Duration) {
        metrics::histogram!(self.name, "route" => route).record(duration.as_secs_f64());
    }

    /// Notes how many were in a batch.
    #[expect(clippy::cast_precision_loss, reason = "it is shown to people")]
    pub fn sized(self, count: usize) {
        metrics::histogram!(self.name).record(count as f64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_end_as_their_kind_asks() {
        let names: BTreeSet<_> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len());
        for Metric { name, kind, help } in ALL {
            assert_eq!(*kind == Kind::Counter, name.ends_with("_total"), "{name}");
            assert!(*kind != Kind::Seconds || name.ends_with("_seconds"), "{name}");
            assert!(*kind != Kind::Sizes || name.ends_with("_batch_size"), "{name}");
            assert!(help.ends_with('.') && !help.contains('|'), "{name}");
        }
    }
}
