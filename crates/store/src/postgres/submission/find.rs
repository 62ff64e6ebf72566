//! A submission of an application.

use domain::id::{ApplicationKey, SubmissionId};

use crate::StoreError;
use crate::postgres::codec::SubmissionRow;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::submission::Submission;

pub(in crate::postgres) async fn find(
    pool: &Pool,
    application: ApplicationKey,
    id: SubmissionId,
) -> Result<Option<Submission>, StoreError> {
    sqlx::query_as!(
        SubmissionRow,
        r#"-- postgres::submission::find
        SELECT s.id, s.webhook_id, s.resend_of, s.endpoint, e.id AS "endpoint_id!", s.deliveries,
            s.event_type, s.content_type, s.payload_bytes, s.received_at, s.erased_at
        FROM fencepost.submissions s
        CROSS JOIN LATERAL (
            SELECT o.id FROM fencepost.endpoints o
            WHERE o.key = s.endpoint AND o.application = $1 OFFSET 0
        ) e
        WHERE s.id = $2"#,
        application.as_uuid(),
        id.as_uuid(),
    )
    .fetch_optional(pool)
    .await
    .map(|row| row.map(Submission::from))
    .map_err(|error| store_error("submission::find", error))
}
