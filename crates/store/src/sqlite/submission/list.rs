//! Submissions of an application, newest first.
//!
//! The newest of each endpoint are taken from its index and merged, so that the size of other
//! applications does not matter. `CROSS JOIN` keeps the tables in this order.

use domain::id::EndpointKey;
use sqlx::SqlitePool;

use crate::StoreError;
use crate::sqlite::codec::SubmissionRow;
use crate::sqlite::errors::store_error;
use crate::submission::{Submission, SubmissionFilter};

pub(in crate::sqlite) async fn list(
    readers: &SqlitePool,
    filter: SubmissionFilter,
) -> Result<Vec<Submission>, StoreError> {
    let rows: Vec<SubmissionRow> = sqlx::query_as(
        "-- sqlite::submission::list
        SELECT s.id, s.webhook_id, s.resend_of, s.endpoint, e.id AS endpoint_id, s.deliveries,
            s.event_type, s.content_type, s.payload_bytes, s.received_at, s.erased_at
        FROM endpoints e
        CROSS JOIN submissions s ON s.endpoint = e.key AND s.id IN (
            SELECT q.id
            FROM submissions q
            WHERE q.endpoint = e.key AND q.id >= ?5 AND q.id < ?3
            ORDER BY q.id DESC
            LIMIT ?4
        )
        WHERE e.application = ?1 AND (?2 IS NULL OR e.key = ?2)
        ORDER BY s.id DESC
        LIMIT ?4",
    )
    .bind(filter.application.as_uuid())
    .bind(filter.endpoint.map(EndpointKey::as_uuid))
    .bind(filter.created.below(filter.page))
    .bind(filter.page.limit)
    .bind(filter.created.lowest())
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("submission::list", error))?;
    rows.into_iter().map(Submission::try_from).collect()
}
