//! Reports as the arrays that a statement takes.

use domain::delivery::Verdict;
use domain::endpoint::Signal;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::codes;
use crate::delivery::Report;
use crate::postgres::codec::millis_i32;

/// One array a column, in the order of the reports.
#[derive(Default)]
pub(super) struct Columns<'a> {
    pub endpoints: Vec<Uuid>,
    pub deliveries: Vec<Uuid>,
    pub tokens: Vec<Uuid>,
    /// 1 delivered, 2 retry, 3 failed.
    pub verdicts: Vec<i16>,
    pub delays_seconds: Vec<f64>,
    pub reasons: Vec<Option<i16>>,
    pub started_at: Vec<OffsetDateTime>,
    pub durations_ms: Vec<i32>,
    pub outcomes: Vec<i16>,
    pub statuses: Vec<Option<i16>>,
    pub workers: Vec<&'a str>,
    pub urls: Vec<&'a str>,
    pub locations: Vec<Option<&'a str>>,
    pub details: Vec<Option<&'a str>>,
    pub responses: Vec<&'a [u8]>,
    pub truncated: Vec<bool>,
    pub versions: Vec<i64>,
    /// What it tells of the endpoint: 0 nothing, 1 success, 2 failure.
    pub signals: Vec<i16>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(reports: &[&'a Report]) -> Self {
        let mut columns = Self::default();
        for report in reports {
            let (verdict, delay, reason) = match report.verdict {
                Verdict::Delivered => (1, 0.0, None),
                Verdict::Retry { after } => (2, after.as_secs_f64(), None),
                Verdict::Failed { reason } => (3, 0.0, Some(codes::of_failure_reason(reason))),
            };
            columns.endpoints.push(report.endpoint.as_uuid());
            columns.deliveries.push(report.delivery.as_uuid());
            columns.tokens.push(report.token.as_uuid());
            columns.verdicts.push(verdict);
            columns.delays_seconds.push(delay);
            columns.reasons.push(reason);
            columns.started_at.push(report.started_at);
            columns.durations_ms.push(millis_i32(report.duration));
            columns.outcomes.push(codes::of_outcome(&report.outcome));
            columns
                .statuses
                .push(report.outcome.status().map(|s| i16::try_from(s).unwrap_or(i16::MAX)));
            columns.workers.push(&report.worker);
            columns.urls.push(&report.evidence.url);
            columns.locations.push(report.evidence.location.as_deref());
            columns.details.push(report.evidence.detail.as_deref());
            columns.responses.push(&report.evidence.response);
            columns.truncated.push(report.evidence.response_truncated);
            columns.versions.push(report.version);
            columns.signals.push(codes::of_signal(Signal::of(&report.outcome)));
        }
        columns
    }
}
