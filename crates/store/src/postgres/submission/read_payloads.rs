//! The payloads of claimed deliveries. The caller bounds the sum of their lengths, which the claim
//! told.

use bytes::Bytes;
use domain::id::{EndpointKey, SubmissionId};

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::submission::Payload;

pub(in crate::postgres) async fn read_payloads(
    pool: &Pool,
    submissions: &[(EndpointKey, SubmissionId)],
) -> Result<Vec<Payload>, StoreError> {
    let endpoints: Vec<_> = submissions.iter().map(|(endpoint, _)| endpoint.as_uuid()).collect();
    let ids: Vec<_> = submissions.iter().map(|(_, id)| id.as_uuid()).collect();
    // A join and not `= ANY`: only a join prunes partitions at run time under a generic plan.
    let rows = sqlx::query!(
        r#"-- postgres::submission::read_payloads
        SELECT s.id, s.webhook_id, s.content_type, s.payload AS "payload!"
        FROM unnest($1::uuid[], $2::uuid[]) AS r(endpoint, id)
        JOIN fencepost.submissions s ON s.endpoint = r.endpoint AND s.id = r.id
        WHERE s.payload IS NOT NULL"#,
        &endpoints,
        &ids,
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("submission::read_payloads", error))?;
    Ok(rows
        .into_iter()
        .map(|row| Payload {
            submission: SubmissionId::from_uuid(row.id),
            webhook_id: row.webhook_id,
            content_type: row.content_type,
            payload: Bytes::from(row.payload),
        })
        .collect())
}
