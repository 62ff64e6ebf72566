//! The receipt of the event that a submission of an application brings.

use domain::id::{ApplicationKey, SubmissionId};
use sqlx::{FromRow, SqlitePool};

use crate::StoreError;
use crate::receipt::{Receipt, kept_headers};
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::store_error;

#[derive(FromRow)]
struct Row {
    source_id: String,
    event_id: String,
    action: Option<String>,
    sent_at: Option<UnixMicros>,
    headers: Option<String>,
    conflicted: bool,
}

pub(in crate::sqlite) async fn find_receipt(
    readers: &SqlitePool,
    application: ApplicationKey,
    submission: SubmissionId,
) -> Result<Option<Receipt>, StoreError> {
    let row: Option<Row> = sqlx::query_as(
        "-- sqlite::source::find_receipt
        SELECT s.id AS source_id, r.event_id, r.action, r.sent_at, r.headers,
            r.status = 2 AS conflicted
        FROM receipts r
        CROSS JOIN sources s ON s.key = unhex(r.source, '-')
        WHERE r.submission = ?2 AND s.application = ?1",
    )
    .bind(application.as_uuid())
    .bind(submission.as_uuid())
    .fetch_optional(readers)
    .await
    .map_err(|error| store_error("source::find_receipt", error))?;
    let receipt = row.map(|row| {
        Ok(Receipt {
            source_id: row.source_id,
            event_id: row.event_id,
            action: row.action,
            sent_at: row.sent_at.map(|at| at.0),
            headers: kept_headers(row.headers.as_deref(), submission)?,
            conflicted: row.conflicted,
        })
    });
    receipt.transpose()
}
