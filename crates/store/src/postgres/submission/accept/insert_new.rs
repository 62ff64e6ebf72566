//! Stores the submissions whose key is free, with their deliveries, in one statement.
//!
//! * Keys are inserted in (scope, key) order, so that two batches never wait for each other in a
//!   circle. Beside an open transaction that holds a key the statement gives up after `lock_timeout`
//!   (55P03), or after what the session says. The limit is set inside the statement, since session
//!   settings do not survive a pooler.
//! * A submission that an earlier try stored is not stored again, and its delivery neither: a try
//!   whose answer was lost can be repeated with the same ids, and is told when it was stored. (Measured
//!   in the prototype: 5 to 19 % more CPU than the form that fails on a repeated id.)
//! * The ids name the days that they are of, so that the statement opens no partition of another day.
//! * The schedule row is not touched: submitters to one endpoint do not wait for one another.

use std::time::Duration;

use domain::submission::{EventType, IdempotencyKey};
use sqlx::PgExecutor;
use time::OffsetDateTime;

use crate::postgres::codec::{self, integer};
use crate::submission::NewSubmission;

/// What the statement did with one row of the batch.
pub(in crate::postgres::submission) enum Inserted {
    Stored { received_at: OffsetDateTime },
    KeyTaken,
    EndpointMissing,
}

pub(in crate::postgres::submission) async fn insert_new(
    executor: impl PgExecutor<'_>,
    lock_timeout: Option<&str>,
    window: Duration,
    batch: &[&NewSubmission],
) -> Result<Vec<Inserted>, sqlx::Error> {
    let column = |of: fn(&NewSubmission) -> uuid::Uuid| batch.iter().map(|s| of(s)).collect();
    let endpoints: Vec<_> = column(|s| s.endpoint.as_uuid());
    let ids: Vec<_> = column(|s| s.id.as_uuid());
    let days = codec::range(&ids);
    let deliveries: Vec<_> = column(|s| s.delivery.as_uuid());
    let webhook_ids: Vec<_> = column(|s| s.webhook_id);
    let keys: Vec<Option<&str>> =
        batch.iter().map(|s| s.idempotency_key.as_ref().map(IdempotencyKey::as_str)).collect();
    let fingerprints: Vec<&[u8]> =
        batch.iter().map(|s| s.fingerprint.as_bytes().as_slice()).collect();
    let event_types: Vec<Option<&str>> =
        batch.iter().map(|s| s.event_type.as_ref().map(EventType::as_str)).collect();
    let content_types: Vec<&str> = batch.iter().map(|s| s.content_type.as_str()).collect();
    let lengths: Vec<i32> = batch.iter().map(|s| integer(s.payload.len())).collect();
    let payloads: Vec<&[u8]> = batch.iter().map(|s| s.payload.as_ref()).collect();
    let rows = sqlx::query!(
        r#"-- postgres::submission::accept::insert_new
        WITH t AS MATERIALIZED (
            SELECT set_config('lock_timeout',
                COALESCE($12::text, current_setting('lock_timeout')), true)
        ), r AS MATERIALIZED (
            SELECT i.endpoint, i.id, i.delivery, i.webhook_id, i.key, i.fingerprint, i.event_type,
                i.content_type, i.payload_bytes, i.payload, i.n, e.key IS NOT NULL AS known
            FROM t
            CROSS JOIN unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[],
                $6::bytea[], $7::text[], $8::text[], $9::int[], $10::bytea[]) WITH ORDINALITY
                AS i(endpoint, id, delivery, webhook_id, key, fingerprint, event_type,
                    content_type, payload_bytes, payload, n)
            LEFT JOIN fencepost.endpoints e ON e.key = i.endpoint AND e.deleted_at IS NULL
        ), k AS (
            INSERT INTO fencepost.idempotency_keys
                (scope, key, fingerprint, submission, deliveries, received_at, expires_at)
            SELECT endpoint, key, fingerprint, id, ARRAY[delivery], statement_timestamp(),
                statement_timestamp() + $11::float8 * interval '1 second'
            FROM r
            WHERE known AND key IS NOT NULL
            ORDER BY endpoint, key COLLATE "C", n
            ON CONFLICT DO NOTHING
            RETURNING submission
        ), w AS MATERIALIZED (
            SELECT * FROM r
            WHERE known AND (key IS NULL OR id IN (SELECT submission FROM k))
        ), s AS (
            INSERT INTO fencepost.submissions (endpoint, id, webhook_id, received_at,
                payload_bytes, deliveries, event_type, content_type, payload)
            SELECT endpoint, id, webhook_id, statement_timestamp(), payload_bytes,
                ARRAY[delivery], event_type, content_type, payload
            FROM w
            ON CONFLICT DO NOTHING
            RETURNING id
        ), d AS (
            INSERT INTO fencepost.deliveries
                (endpoint, id, submission, due_at, payload_bytes, state)
            SELECT w.endpoint, w.delivery, w.id, statement_timestamp(), w.payload_bytes, 1
            FROM w JOIN s ON s.id = w.id
        )
        SELECT r.known AS "known!", w.n IS NOT NULL AS "stored!",
            coalesce(CASE WHEN w.n IS NOT NULL AND s.id IS NULL THEN (
                SELECT p.received_at FROM fencepost.submissions p
                WHERE p.endpoint = r.endpoint AND p.id = r.id AND p.id BETWEEN $13 AND $14
            ) END, statement_timestamp()) AS "received_at!"
        FROM r
        LEFT JOIN w ON w.n = r.n
        LEFT JOIN s ON s.id = r.id
        ORDER BY r.n"#,
        &endpoints,
        &ids,
        &deliveries,
        &webhook_ids,
        &keys as &[Option<&str>],
        &fingerprints as &[&[u8]],
        &event_types as &[Option<&str>],
        &content_types as &[&str],
        &lengths,
        &payloads as &[&[u8]],
        window.as_secs_f64(),
        lock_timeout,
        days.0,
        days.1,
    )
    .fetch_all(executor)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| match (row.known, row.stored) {
            (false, _) => Inserted::EndpointMissing,
            (true, true) => Inserted::Stored { received_at: row.received_at },
            (true, false) => Inserted::KeyTaken,
        })
        .collect())
}
