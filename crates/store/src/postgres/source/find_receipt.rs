//! The receipt of the event that a submission of an application brings.

use domain::id::{ApplicationKey, SubmissionId};

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::receipt::{Receipt, kept_headers};

pub(in crate::postgres) async fn find_receipt(
    pool: &Pool,
    application: ApplicationKey,
    submission: SubmissionId,
) -> Result<Option<Receipt>, StoreError> {
    // A receipt of an application's own has no submission, and a source that is no UUID.
    let row = sqlx::query!(
        r#"-- postgres::source::find_receipt
        SELECT s.id AS "source_id!", r.event_id, r.action, r.sent_at, r.headers::text AS headers,
            r.status = 2 AS "conflicted!"
        FROM fencepost.receipts r
        CROSS JOIN LATERAL (
            SELECT o.id FROM fencepost.sources o
            WHERE o.key = r.source::uuid AND o.application = $1 OFFSET 0
        ) s
        WHERE r.submission = $2"#,
        application.as_uuid(),
        submission.as_uuid(),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("source::find_receipt", error))?;
    let receipt = row.map(|row| {
        Ok(Receipt {
            source_id: row.source_id,
            event_id: row.event_id,
            action: row.action,
            sent_at: row.sent_at,
            headers: kept_headers(row.headers.as_deref(), submission)?,
            conflicted: row.conflicted,
        })
    });
    receipt.transpose()
}
