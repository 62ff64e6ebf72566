//! Records the results of tries, one after another in the order of the input.

mod record_live;
mod record_settled;

use std::time::Duration;

use domain::endpoint::Signal;

use self::record_live::record_live;
use self::record_settled::record_settled;
use crate::delivery::{Recording, Report};
use crate::sqlite::codec::{UnixMicros, millis};
use crate::sqlite::errors::Fault;
use crate::sqlite::life::{Counted, Results};
use crate::sqlite::writer::{WriteTransaction, Writer};
use crate::{StoreError, codes};

pub(in crate::sqlite) async fn record_attempts(
    writer: &Writer,
    retention: Duration,
    reports: &[Report],
) -> Result<Vec<Recording>, StoreError> {
    match record_together(writer, retention, reports).await {
        Err(StoreError::Refused { .. } | StoreError::Corrupt { .. }) if reports.len() > 1 => {
            record_singly(writer, retention, reports).await
        }
        answer => answer,
    }
}

/// Records each report in a transaction of its own, so that one that cannot be recorded does not
/// hold back the others. Those are `Repeated` when the caller tries again.
async fn record_singly(
    writer: &Writer,
    retention: Duration,
    reports: &[Report],
) -> Result<Vec<Recording>, StoreError> {
    let mut recordings = Vec::with_capacity(reports.len());
    for report in reports.chunks(1) {
        recordings.push(record_together(writer, retention, report).await);
    }
    let recordings: Vec<Vec<Recording>> = recordings.into_iter().collect::<Result<_, _>>()?;
    Ok(recordings.concat())
}

async fn record_together(
    writer: &Writer,
    retention: Duration,
    reports: &[Report],
) -> Result<Vec<Recording>, StoreError> {
    let reports = reports.to_vec();
    writer
        .run("delivery::record_attempts", move |tx| {
            Box::pin(async move {
                let mut recordings = Vec::with_capacity(reports.len());
                let mut results = Results::default();
                for report in reports {
                    let endpoint = report.endpoint;
                    let counted = Counted {
                        version: report.version,
                        token: report.token,
                        signal: Signal::of(&report.outcome),
                    };
                    let recording = record(tx, retention, report).await?;
                    if let Recording::Fenced(_) = recording {
                        results.add(endpoint, counted);
                    }
                    recordings.push(recording);
                }
                results.write(tx).await?;
                Ok(recordings)
            })
        })
        .await
}

async fn record(
    tx: &mut WriteTransaction,
    retention: Duration,
    report: Report,
) -> Result<Recording, Fault> {
    let report = Report { evidence: report.evidence.bounded(), ..report };
    // The number that this claim's attempt has, if it has reported before.
    let reported = read_number(tx, &report).await?;
    if let Some(recorded) = record_live(tx, retention, &report, reported).await? {
        return Ok(recorded.into());
    }
    let recorded = record_settled(tx, &report, reported).await?;
    Ok(recorded.map_or(Recording::Gone, Recording::from))
}

async fn read_number(tx: &mut WriteTransaction, report: &Report) -> Result<Option<u32>, Fault> {
    let number = sqlx::query_scalar(
        "-- sqlite::delivery::record_attempts::read_number
        SELECT number FROM attempts WHERE endpoint = ?1 AND delivery = ?2 AND claim_token = ?3",
    )
    .bind(report.endpoint.as_uuid())
    .bind(report.delivery.as_uuid())
    .bind(report.token.as_uuid())
    .fetch_optional(tx.connection())
    .await?;
    Ok(number)
}

async fn insert_attempt(
    tx: &mut WriteTransaction,
    report: &Report,
    number: u32,
    late: bool,
) -> Result<(), Fault> {
    let evidence = &report.evidence;
    sqlx::query(
        "-- sqlite::delivery::record_attempts::insert_attempt
        INSERT INTO attempts (endpoint, delivery, claim_token, started_at, recorded_at, number,
            duration_ms, outcome, status, late, response_truncated, worker, url, location, detail,
            response)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    )
    .bind(report.endpoint.as_uuid())
    .bind(report.delivery.as_uuid())
    .bind(report.token.as_uuid())
    .bind(UnixMicros(report.started_at))
    .bind(UnixMicros(tx.now()))
    .bind(number)
    .bind(u32::try_from(millis(report.duration)).unwrap_or(u32::MAX))
    .bind(codes::of_outcome(&report.outcome))
    .bind(report.outcome.status())
    .bind(late)
    .bind(evidence.response_truncated)
    .bind(report.worker.as_str())
    .bind(evidence.url.as_str())
    .bind(evidence.location.as_deref())
    .bind(evidence.detail.as_deref())
    .bind(evidence.response.as_ref())
    .execute(tx.connection())
    .await?;
    Ok(())
}
