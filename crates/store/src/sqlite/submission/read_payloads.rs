//! The payloads of claimed deliveries. The caller bounds the sum of their lengths, which the claim
//! told.

use bytes::Bytes;
use domain::id::{EndpointKey, SubmissionId};
use serde_json::Value;
use sqlx::{FromRow, SqlitePool};
use uuid::Uuid;

use crate::StoreError;
use crate::sqlite::errors::store_error;
use crate::submission::Payload;

#[derive(FromRow)]
struct Row {
    id: Uuid,
    webhook_id: Uuid,
    content_type: String,
    payload: Vec<u8>,
}

pub(in crate::sqlite) async fn read_payloads(
    readers: &SqlitePool,
    submissions: &[(EndpointKey, SubmissionId)],
) -> Result<Vec<Payload>, StoreError> {
    let pair = |(endpoint, id): &(EndpointKey, SubmissionId)| {
        [endpoint.to_string(), id.to_string()].into_iter().collect::<Value>()
    };
    let pairs: Value = submissions.iter().map(pair).collect();
    let rows: Vec<Row> = sqlx::query_as(
        "-- sqlite::submission::read_payloads
        SELECT s.id, s.webhook_id, s.content_type, s.payload
        FROM json_each(?1) r
        CROSS JOIN submissions s ON s.endpoint = unhex(r.value ->> 0, '-')
            AND s.id = unhex(r.value ->> 1, '-')
        WHERE s.payload IS NOT NULL",
    )
    .bind(pairs.to_string())
    .fetch_all(readers)
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
