//! Copies a submission under new ids, with a delivery and its key. The payload never leaves the
//! database.

use std::time::Duration;

use domain::id::SubmissionId;

use crate::sqlite::codec::{UnixMicros, json_of_uuids};
use crate::sqlite::errors::Fault;
use crate::sqlite::submission::accept::insert_new::insert_key;
use crate::sqlite::writer::WriteTransaction;
use crate::submission::NewSubmission;

/// `keyed` has the new ids, and the key with what it stands for.
pub(super) async fn copy(
    tx: &mut WriteTransaction,
    window: Duration,
    keyed: &NewSubmission,
    original: SubmissionId,
) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::submission::resend::copy::submission
        INSERT INTO submissions (endpoint, id, webhook_id, resend_of, received_at, payload_bytes,
            deliveries, event_type, content_type, payload)
        SELECT endpoint, ?3, webhook_id, id, ?4, payload_bytes, ?5, event_type, content_type,
            payload
        FROM submissions
        WHERE endpoint = ?1 AND id = ?2",
    )
    .bind(keyed.endpoint.as_uuid())
    .bind(original.as_uuid())
    .bind(keyed.id.as_uuid())
    .bind(UnixMicros(tx.now()))
    .bind(json_of_uuids([keyed.delivery.as_uuid()]))
    .execute(tx.connection())
    .await?;
    sqlx::query(
        "-- sqlite::submission::resend::copy::delivery
        INSERT INTO deliveries (endpoint, id, submission, due_at, payload_bytes, state)
        SELECT endpoint, ?3, id, received_at, payload_bytes, 1
        FROM submissions
        WHERE endpoint = ?1 AND id = ?2",
    )
    .bind(keyed.endpoint.as_uuid())
    .bind(keyed.id.as_uuid())
    .bind(keyed.delivery.as_uuid())
    .execute(tx.connection())
    .await?;
    insert_key(tx, window, keyed).await
}
