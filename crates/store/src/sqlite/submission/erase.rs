//! Erases the payload of a submission, and calls off what is owed for it.
//!
//! One transaction: nobody sees a payload that is gone and a delivery that is still owed. A delivery
//! that a worker has is only marked, since its request may be out. The headers that came with an event
//! go too. Idempotency key and receipt stay: what they keep of the payload is a digest.

use domain::delivery::CancelReason;
use domain::id::{ApplicationKey, EndpointKey, SubmissionId};
use sqlx::FromRow;
use uuid::Uuid;

use crate::StoreError;
use crate::sqlite::codec::{self, UnixMicros, corrupt};
use crate::sqlite::delivery::cancel::cancel_row;
use crate::sqlite::delivery::read_row;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};

#[derive(FromRow)]
struct Row {
    endpoint: Uuid,
    deliveries: String,
}

pub(in crate::sqlite) async fn erase(
    writer: &Writer,
    application: ApplicationKey,
    submission: SubmissionId,
) -> Result<bool, StoreError> {
    writer
        .run("submission::erase", move |tx| Box::pin(erase_in_tx(tx, application, submission)))
        .await
}

async fn erase_in_tx(
    tx: &mut WriteTransaction,
    application: ApplicationKey,
    submission: SubmissionId,
) -> Result<bool, Fault> {
    let row: Option<Row> = sqlx::query_as(
        "-- sqlite::submission::erase::find
        SELECT s.endpoint, s.deliveries
        FROM submissions s
        CROSS JOIN endpoints e ON e.key = s.endpoint
        WHERE s.id = ?2 AND e.application = ?1",
    )
    .bind(application.as_uuid())
    .bind(submission.as_uuid())
    .fetch_optional(tx.connection())
    .await?;
    let Some(row) = row else { return Ok(false) };
    let deliveries = codec::deliveries(&row.deliveries)
        .ok_or_else(|| corrupt("submissions", "deliveries", submission))?;
    for delivery in deliveries {
        let owed = read_row(tx, EndpointKey::from_uuid(row.endpoint), delivery).await?;
        if let Some(owed) = owed {
            cancel_row(tx, &owed, CancelReason::PayloadErased).await?;
        }
    }
    sqlx::query(
        "-- sqlite::submission::erase
        UPDATE submissions SET payload = NULL, erased_at = ?3
        WHERE endpoint = ?1 AND id = ?2 AND payload IS NOT NULL",
    )
    .bind(row.endpoint)
    .bind(submission.as_uuid())
    .bind(UnixMicros(tx.now()))
    .execute(tx.connection())
    .await?;
    sqlx::query(
        "-- sqlite::submission::erase::forget_headers
        UPDATE receipts SET headers = NULL WHERE submission = ?1 AND headers IS NOT NULL",
    )
    .bind(submission.as_uuid())
    .execute(tx.connection())
    .await?;
    Ok(true)
}
