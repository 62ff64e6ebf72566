//! Records the result of a delivery that is owed or replayable.

use std::time::Duration;

use domain::delivery::Recorded;
use domain::id::EndpointKey;

use super::insert_attempt;
use crate::delivery::Report;
use crate::sqlite::delivery::{move_in_flight, read_row, tell_failure, write_row};
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::WriteTransaction;

/// Answers none if there is no such delivery among them.
pub(super) async fn record_live(
    tx: &mut WriteTransaction,
    retention: Duration,
    report: &Report,
    reported: Option<u32>,
) -> Result<Option<Recorded>, Fault> {
    let Some(row) = read_row(tx, report.endpoint, report.delivery).await? else {
        return Ok(None);
    };
    let deleted = is_deleted(tx, report.endpoint).await?;
    let mut delivery = row.delivery()?;
    let held_slot = delivery.state.holds_slot();
    let recorded =
        delivery.report(report.token, report.verdict, reported, deleted, retention, tx.now());
    let (number, late) = match recorded {
        Recorded::Fenced(number) => (number, false),
        Recorded::Late(number) => (number, true),
        Recorded::Repeated(_) => return Ok(Some(recorded)),
    };
    insert_attempt(tx, report, number, late).await?;
    write_row(tx, &row, &delivery).await?;
    if !late {
        tell_failure(tx, &row, &delivery).await?;
    }
    // A parked delivery has given its slot back already.
    if held_slot && !delivery.state.holds_slot() {
        move_in_flight(tx, report.endpoint, -1).await?;
    }
    Ok(Some(recorded))
}

/// An endpoint without a schedule row loses no result.
async fn is_deleted(tx: &mut WriteTransaction, endpoint: EndpointKey) -> Result<bool, Fault> {
    let deleted = sqlx::query_scalar(
        "-- sqlite::delivery::record_attempts::record_live::is_deleted
        SELECT deleted FROM endpoint_schedule WHERE endpoint = ?1",
    )
    .bind(endpoint.as_uuid())
    .fetch_optional(tx.connection())
    .await?;
    Ok(deleted.unwrap_or(false))
}
