//! Submissions of an application, newest first.
//!
//! The newest of each endpoint are taken from its index and merged, so that the size of other
//! applications does not matter. All bounds are always given, see `delivery/list.rs`.

use domain::id::EndpointKey;

use crate::StoreError;
use crate::postgres::codec::{SubmissionRow, bounds};
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::submission::{Submission, SubmissionFilter};

pub(in crate::postgres) async fn list(
    pool: &Pool,
    filter: SubmissionFilter,
) -> Result<Vec<Submission>, StoreError> {
    let (lowest, highest) = bounds(filter.endpoint.map(EndpointKey::as_uuid));
    sqlx::query_as!(
        SubmissionRow,
        r#"-- postgres::submission::list
        SELECT s.id AS "id!", s.webhook_id AS "webhook_id!", s.endpoint AS "endpoint!",
            e.id AS endpoint_id, s.deliveries AS "deliveries!", s.event_type,
            s.content_type AS "content_type!", s.payload_bytes AS "payload_bytes!",
            s.received_at AS "received_at!", s.resend_of, s.erased_at
        FROM fencepost.endpoints e
        CROSS JOIN LATERAL (
            SELECT q.id, q.webhook_id, q.endpoint, q.deliveries, q.event_type, q.content_type,
                q.payload_bytes, q.received_at, q.resend_of, q.erased_at
            FROM fencepost.submissions q
            WHERE q.endpoint = e.key AND q.id >= $3 AND q.id < $4
            ORDER BY q.id DESC
            LIMIT $5
        ) s
        WHERE e.application = $1 AND e.key >= $2 AND e.key <= $6
        ORDER BY s.id DESC
        LIMIT $5"#,
        filter.application.as_uuid(),
        lowest,
        filter.created.lowest(),
        filter.created.below(filter.page),
        i64::from(filter.page.limit),
        highest,
    )
    .fetch_all(pool)
    .await
    .map(|rows| rows.into_iter().map(Submission::from).collect())
    .map_err(|error| store_error("submission::list", error))
}
