//! The payloads of claimed deliveries. The caller bounds the sum of their lengths, which the claim
//! told.

use bytes::Bytes;
use domain::id::{EndpointKey, SubmissionId};

use crate::StoreError;
use crate::postgres::codec::range;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::submission::Payload;

pub(in crate::postgres) async fn read_payloads(
    pool: &Pool,
    submissions: &[(EndpointKey, SubmissionId)],
) -> Result<Vec<Payload>, StoreError> {
    let endpoints: Vec<_> = submissions.iter().map(|(endpoint, _)| endpoint.as_uuid()).collect();
    let ids: Vec<_> = submissions.iter().map(|(_, id)| id.as_uuid()).collect();
    let (lowest, highest) = range(&ids);
    // A join and not `= ANY`: only a join prunes partitions at run time under a generic plan. `LIMIT 1` has
    // each be looked up by itself, and not all that lies between.
    let rows = sqlx::query!(
        r#"-- postgres::submission::read_payloads
        SELECT s.id, s.webhook_id, s.content_type, s.payload AS "payload!"
        FROM unnest($1::uuid[], $2::uuid[]) AS r(endpoint, id)
        CROSS JOIN LATERAL (
            SELECT b.id, b.webhook_id, b.content_type, b.payload
            FROM fencepost.submissions b
            WHERE b.endpoint = r.endpoint AND b.id = r.id AND b.id BETWEEN $3 AND $4
            LIMIT 1
        ) s
        WHERE s.payload IS NOT NULL"#,
        &endpoints,
        &ids,
        lowest,
        highest,
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
