//! Records a late result of a delivery that is settled: it is history, and raises `attempts`.

use domain::delivery::Recorded;

use super::insert_attempt;
use crate::delivery::Report;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::WriteTransaction;

/// Answers none if there is no such delivery among them.
pub(super) async fn record_settled(
    tx: &mut WriteTransaction,
    report: &Report,
    reported: Option<u32>,
) -> Result<Option<Recorded>, Fault> {
    if let Some(number) = reported {
        return Ok(Some(Recorded::Repeated(number)));
    }
    let Some(number) = raise_attempts(tx, report).await? else { return Ok(None) };
    insert_attempt(tx, report, number, true).await?;
    Ok(Some(Recorded::Late(number)))
}

/// The number that the attempt gets.
async fn raise_attempts(tx: &mut WriteTransaction, report: &Report) -> Result<Option<u32>, Fault> {
    let mut numbers = sqlx::query_scalar(
        "-- sqlite::delivery::record_attempts::record_settled::raise_attempts
        UPDATE settled_deliveries SET attempts = attempts + 1
        WHERE endpoint = ?1 AND id = ?2
        RETURNING attempts",
    )
    .bind(report.endpoint.as_uuid())
    .bind(report.delivery.as_uuid())
    .fetch_all(tx.connection())
    .await?;
    Ok(numbers.pop())
}
