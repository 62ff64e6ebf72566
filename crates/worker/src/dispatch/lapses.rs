//! Claims that ended without a report, as a later claim found them.

use domain::delivery::{ClaimKind, FailureReason};
use process::metrics;
use store::delivery::ClaimBatch;

/// A lapse means that some worker died, or was cut off, with a request that may have gone out.
pub(super) fn tell_of(batch: &ClaimBatch) {
    let reclaimed = batch.claimed.iter().filter(|claimed| claimed.kind == ClaimKind::Reclaimed);
    for claimed in reclaimed {
        metrics::LAPSES.add(1);
        tracing::warn!(
            delivery.id = %claimed.delivery,
            endpoint.key = %claimed.endpoint,
            lapsed_worker = claimed.lapsed_worker,
            lapses = claimed.lapses,
            "a claim ended without a report and was taken over"
        );
    }
    for lapsed in &batch.set_aside {
        metrics::LAPSES.add(1);
        if lapsed.kind == ClaimKind::Abandoned {
            metrics::FAILED.add_with("reason", FailureReason::Abandoned.as_str(), 1);
        }
        tracing::warn!(
            delivery.id = %lapsed.delivery,
            endpoint.key = %lapsed.endpoint,
            lapsed_worker = lapsed.lapsed_worker,
            lapses = lapsed.lapses,
            kind = ?lapsed.kind,
            "a claim ended without a report again, and the delivery was set aside"
        );
    }
}
