//! Stores receipt, submission and delivery, unless the receipt is there, in one statement.
//!
//! The time-out is set inside the statement, since session settings do not survive a pooler.

use domain::label::Label;
use domain::submission::EventType;
use time::OffsetDateTime;

use crate::postgres::codec::integer;
use crate::postgres::pool::Pool;
use crate::receipt::PATIENCE;
use crate::source::{NewReception, headers_json};

/// What the statement did.
pub(super) enum Inserted {
    First { received_at: OffsetDateTime },
    Taken,
    Missing,
}

pub(super) async fn insert_first(pool: &Pool, new: &NewReception) -> Result<Inserted, sqlx::Error> {
    let (receipt, submission) = (&new.receipt, &new.submission);
    let row = sqlx::query!(
        r#"-- postgres::source::receive::insert_first
        WITH t AS MATERIALIZED (
            SELECT set_config('lock_timeout', $1, true)
        ), e AS MATERIALIZED (
            SELECT e.key
            FROM t
            CROSS JOIN fencepost.sources s
            JOIN fencepost.endpoints e ON e.key = $3
            WHERE s.key = $2 AND s.deleted_at IS NULL AND e.deleted_at IS NULL
        ), i AS (
            INSERT INTO fencepost.receipts (source, event_id, fingerprint, resource_id, action,
                sent_at, received_at, processed_at, submission, headers)
            SELECT $4, $5, $6, $7, $8, $9, statement_timestamp(), statement_timestamp(), $10,
                $11::text::jsonb
            FROM e
            ON CONFLICT DO NOTHING
            RETURNING submission
        ), m AS (
            INSERT INTO fencepost.submissions (endpoint, id, webhook_id, received_at,
                payload_bytes, deliveries, event_type, content_type, payload)
            SELECT e.key, i.submission, $12, statement_timestamp(), $13, ARRAY[$14::uuid], $15, $16,
                $17
            FROM e CROSS JOIN i
        ), d AS (
            INSERT INTO fencepost.deliveries
                (endpoint, id, submission, due_at, payload_bytes, state)
            SELECT e.key, $14, i.submission, statement_timestamp(), $13, 1
            FROM e CROSS JOIN i
        )
        SELECT EXISTS (SELECT FROM e) AS "known!", EXISTS (SELECT FROM i) AS "first!",
            statement_timestamp() AS "received_at!""#,
        format!("{}ms", PATIENCE.as_millis()),
        new.source.as_uuid(),
        submission.endpoint.as_uuid(),
        receipt.key.source(),
        receipt.key.event_id(),
        receipt.fingerprint.as_bytes().as_slice(),
        receipt.resource_id.as_ref().map(Label::as_str),
        receipt.action.as_ref().map(Label::as_str),
        receipt.sent_at,
        submission.id.as_uuid(),
        headers_json(&new.headers),
        submission.webhook_id,
        integer(submission.payload.len()),
        submission.delivery.as_uuid(),
        submission.event_type.as_ref().map(EventType::as_str),
        submission.content_type.as_str(),
        submission.payload.as_ref(),
    )
    .fetch_one(pool)
    .await?;
    Ok(match (row.known, row.first) {
        (false, _) => Inserted::Missing,
        (true, true) => Inserted::First { received_at: row.received_at },
        (true, false) => Inserted::Taken,
    })
}
