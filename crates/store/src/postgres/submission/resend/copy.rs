//! Copies a submission under new ids, with a delivery, if its payload is there and its endpoint
//! takes deliveries.
//!
//! The original is locked against an erasure: one that came before leaves nothing to copy, one that
//! comes later finds the copy made. The payload never leaves the database.

use domain::id::SubmissionId;
use domain::submission::IdempotencyKey;
use time::OffsetDateTime;

use crate::postgres::pool::Pool;
use crate::postgres::submission::accept::KeyLimits;
use crate::submission::NewSubmission;

/// What the statement did.
pub(super) enum Copied {
    Stored { received_at: OffsetDateTime },
    KeyTaken,
    NothingToCopy,
}

/// `keyed` has the new ids, and the key with what it stands for.
pub(super) async fn copy(
    pool: &Pool,
    limits: KeyLimits,
    keyed: &NewSubmission,
    original: SubmissionId,
) -> Result<Copied, sqlx::Error> {
    let row = sqlx::query!(
        r#"-- postgres::submission::resend::copy
        WITH t AS MATERIALIZED (
            SELECT set_config('lock_timeout', $8, true)
        ), o AS MATERIALIZED (
            SELECT s.endpoint, s.webhook_id, s.event_type, s.content_type, s.payload_bytes,
                s.payload
            FROM t
            CROSS JOIN fencepost.submissions s
            WHERE s.endpoint = $1 AND s.id = $2 AND s.payload IS NOT NULL AND EXISTS (
                SELECT FROM fencepost.endpoint_schedule c
                WHERE c.endpoint = s.endpoint AND c.enabled AND NOT c.deleted
            )
            FOR SHARE OF s
        ), k AS (
            INSERT INTO fencepost.idempotency_keys
                (scope, key, fingerprint, submission, deliveries, received_at, expires_at)
            SELECT endpoint, $5, $6, $3, ARRAY[$4::uuid], statement_timestamp(),
                statement_timestamp() + $7::float8 * interval '1 second'
            FROM o
            WHERE $5::text IS NOT NULL
            ON CONFLICT DO NOTHING
            RETURNING submission
        ), w AS MATERIALIZED (
            SELECT o.* FROM o WHERE $5::text IS NULL OR EXISTS (SELECT FROM k)
        ), s AS (
            INSERT INTO fencepost.submissions (endpoint, id, webhook_id, resend_of, received_at,
                payload_bytes, deliveries, event_type, content_type, payload)
            SELECT endpoint, $3, webhook_id, $2, statement_timestamp(), payload_bytes,
                ARRAY[$4::uuid], event_type, content_type, payload
            FROM w
        ), d AS (
            INSERT INTO fencepost.deliveries
                (endpoint, id, submission, due_at, payload_bytes, state)
            SELECT endpoint, $4, $3, statement_timestamp(), payload_bytes, 1
            FROM w
        )
        SELECT EXISTS (SELECT FROM o) AS "found!", EXISTS (SELECT FROM w) AS "stored!",
            statement_timestamp() AS "received_at!""#,
        keyed.endpoint.as_uuid(),
        original.as_uuid(),
        keyed.id.as_uuid(),
        keyed.delivery.as_uuid(),
        keyed.idempotency_key.as_ref().map(IdempotencyKey::as_str),
        keyed.fingerprint.as_bytes().as_slice(),
        limits.window.as_secs_f64(),
        limits.lock_timeout(),
    )
    .fetch_one(pool)
    .await?;
    Ok(match (row.found, row.stored) {
        (false, _) => Copied::NothingToCopy,
        (true, false) => Copied::KeyTaken,
        (true, true) => Copied::Stored { received_at: row.received_at },
    })
}
