//! A submission of an application.

use domain::id::{ApplicationKey, SubmissionId};
use sqlx::SqlitePool;

use crate::StoreError;
use crate::sqlite::codec::SubmissionRow;
use crate::sqlite::errors::store_error;
use crate::submission::Submission;

pub(in crate::sqlite) async fn find(
    readers: &SqlitePool,
    application: ApplicationKey,
    id: SubmissionId,
) -> Result<Option<Submission>, StoreError> {
    let row: Option<SubmissionRow> = sqlx::query_as(
        "-- sqlite::submission::find
        SELECT s.id, s.webhook_id, s.resend_of, s.endpoint, e.id AS endpoint_id, s.deliveries,
            s.event_type, s.content_type, s.payload_bytes, s.received_at, s.erased_at
        FROM submissions s
        CROSS JOIN endpoints e ON e.key = s.endpoint
        WHERE s.id = ?2 AND e.application = ?1",
    )
    .bind(application.as_uuid())
    .bind(id.as_uuid())
    .fetch_optional(readers)
    .await
    .map_err(|error| store_error("submission::find", error))?;
    row.map(Submission::try_from).transpose()
}
