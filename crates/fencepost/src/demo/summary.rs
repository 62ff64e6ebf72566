//! What the demonstration found.

use std::fmt;
use std::time::Duration;

use domain::delivery::StateName;
use serde::Serialize;
use store::delivery::DeliveryView;

use super::receiver::Receiver;
use super::submitter::Submitted;

/// The result, as `--json` prints it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Summary {
    store: &'static str,
    /// Payloads that were submitted, refused ones included.
    submissions: usize,
    /// Deliveries in state delivered.
    delivered: usize,
    /// Accepted submissions that the receiver took after the reference implementation verified them.
    verified: usize,
    /// Those of them whose body was byte for byte what was submitted.
    identical: usize,
    /// Attempts of all deliveries.
    attempts: u64,
    /// Submissions that the api refused.
    refused: usize,
    elapsed_ms: u64,
    latency_ms: Latency,
}

/// From the producer's first byte to the receiver, in milliseconds; retries are part of it.
#[derive(Debug, PartialEq, Serialize)]
struct Latency {
    p50: f64,
    p95: f64,
    p99: f64,
}

impl Summary {
    pub(super) fn of(
        store: &'static str,
        submitted: &Submitted,
        receiver: &Receiver,
        deliveries: &[DeliveryView],
        elapsed: Duration,
    ) -> Self {
        let mut latencies = Vec::new();
        let (mut verified, mut identical) = (0, 0);
        for accepted in &submitted.accepted {
            let Some(received) = receiver.of(&accepted.id) else { continue };
            verified += 1;
            identical += usize::from(received.body == accepted.payload);
            latencies.push(received.at.saturating_duration_since(accepted.sent_at));
        }
        latencies.sort_unstable();
        Self {
            store,
            submissions: submitted.accepted.len() + submitted.refused,
            delivered: deliveries.iter().filter(|d| d.state == StateName::Delivered).count(),
            verified,
            identical,
            attempts: deliveries.iter().map(|d| u64::from(d.attempts)).sum(),
            refused: submitted.refused,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            latency_ms: Latency {
                p50: millis(percentile(&latencies, 50)),
                p95: millis(percentile(&latencies, 95)),
                p99: millis(percentile(&latencies, 99)),
            },
        }
    }

    /// Whether every submission was delivered, verified and byte-identical.
    pub(super) fn holds(&self) -> bool {
        [self.delivered, self.verified, self.identical] == [self.submissions; 3]
    }
}

/// The nearest-rank percentile of sorted values; zero of none.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// With a resolution of a microsecond.
fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { submissions, delivered, verified, identical, attempts, refused, .. } = self;
        let Latency { p50, p95, p99 } = self.latency_ms;
        writeln!(f, "store        {}", self.store)?;
        writeln!(f, "submissions  {submissions} ({refused} refused)")?;
        writeln!(f, "delivered    {delivered} in {attempts} attempts")?;
        writeln!(f, "verified     {verified} by the reference implementation")?;
        writeln!(f, "identical    {identical} byte for byte")?;
        writeln!(f, "latency      p50 {p50} ms, p95 {p95} ms, p99 {p99} ms")?;
        writeln!(f, "elapsed      {} ms", self.elapsed_ms)?;
        let verdict = if self.holds() { "all arrived" } else { "NOT all arrived as submitted" };
        writeln!(f, "{verdict}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let values: Vec<_> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(percentile(&values, 50), Duration::from_millis(100));
        assert_eq!(percentile(&values, 99), Duration::from_millis(198));
        assert_eq!(percentile(&values[..1], 99), Duration::from_millis(1));
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }

    #[test]
    fn one_missing_message_fails_the_demonstration() {
        let good = Summary {
            store: "sqlite",
            submissions: 3,
            delivered: 3,
            verified: 3,
            identical: 3,
            attempts: 4,
            refused: 0,
            elapsed_ms: 1,
            latency_ms: Latency { p50: 1.0, p95: 1.0, p99: 1.0 },
        };
        assert!(good.holds());
        assert!(!Summary { delivered: 2, ..good }.holds());
    }
}
