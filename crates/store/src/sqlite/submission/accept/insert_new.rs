//! Stores a submission whose key is free, with its delivery.

use std::time::Duration;

use domain::submission::EventType;
use sqlx::FromRow;

use crate::sqlite::codec::{self, UnixMicros, corrupt, json_of_uuids};
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::Writing;
use crate::submission::{Accepted, NewSubmission};

/// A submission that an earlier try stored is not stored again, and its delivery neither: it gets
/// the answer that was lost.
pub(in crate::sqlite) async fn insert_new(
    tx: &mut impl Writing,
    window: Duration,
    new: &NewSubmission,
) -> Result<Accepted, Fault> {
    if !insert_submission(tx, new).await? {
        return read_stored(tx, new).await;
    }
    insert_delivery(tx, new).await?;
    insert_key(tx, window, new).await?;
    Ok(Accepted { submission: new.id, deliveries: vec![new.delivery], received_at: tx.now() })
}

/// Answers whether it was new.
async fn insert_submission(tx: &mut impl Writing, new: &NewSubmission) -> Result<bool, Fault> {
    let done = sqlx::query(
        "-- sqlite::submission::accept::insert_new::insert_submission
        INSERT INTO submissions (endpoint, id, webhook_id, received_at, payload_bytes, deliveries,
            event_type, content_type, payload)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
        ON CONFLICT (endpoint, id) DO NOTHING",
    )
    .bind(new.endpoint.as_uuid())
    .bind(new.id.as_uuid())
    .bind(new.webhook_id)
    .bind(UnixMicros(tx.now()))
    .bind(payload_bytes(new))
    .bind(json_of_uuids([new.delivery.as_uuid()]))
    .bind(new.event_type.as_ref().map(EventType::as_str))
    .bind(new.content_type.as_str())
    .bind(new.payload.as_ref())
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() > 0)
}

async fn insert_delivery(tx: &mut impl Writing, new: &NewSubmission) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::submission::accept::insert_new::insert_delivery
        INSERT INTO deliveries (endpoint, id, submission, due_at, payload_bytes, state)
        VALUES (?1, ?2, ?3, ?4, ?5, 1)",
    )
    .bind(new.endpoint.as_uuid())
    .bind(new.delivery.as_uuid())
    .bind(new.id.as_uuid())
    .bind(UnixMicros(tx.now()))
    .bind(payload_bytes(new))
    .execute(tx.connection())
    .await?;
    Ok(())
}

pub(in crate::sqlite::submission) async fn insert_key(
    tx: &mut impl Writing,
    window: Duration,
    new: &NewSubmission,
) -> Result<(), Fault> {
    let Some(key) = &new.idempotency_key else { return Ok(()) };
    sqlx::query(
        "-- sqlite::submission::accept::insert_new::insert_key
        INSERT INTO idempotency_keys
            (scope, key, fingerprint, submission, deliveries, received_at, expires_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .bind(new.endpoint.as_uuid())
    .bind(key.as_str())
    .bind(new.fingerprint.as_bytes().as_slice())
    .bind(new.id.as_uuid())
    .bind(json_of_uuids([new.delivery.as_uuid()]))
    .bind(UnixMicros(tx.now()))
    .bind(UnixMicros(tx.now() + window))
    .execute(tx.connection())
    .await?;
    Ok(())
}

#[derive(FromRow)]
struct Stored {
    deliveries: String,
    received_at: UnixMicros,
}

async fn read_stored(tx: &mut impl Writing, new: &NewSubmission) -> Result<Accepted, Fault> {
    let stored: Stored = sqlx::query_as(
        "-- sqlite::submission::accept::insert_new::read_stored
        SELECT deliveries, received_at FROM submissions WHERE endpoint = ?1 AND id = ?2",
    )
    .bind(new.endpoint.as_uuid())
    .bind(new.id.as_uuid())
    .fetch_one(tx.connection())
    .await?;
    Ok(Accepted {
        submission: new.id,
        deliveries: codec::deliveries(&stored.deliveries)
            .ok_or_else(|| corrupt("submissions", "deliveries", new.id))?,
        received_at: stored.received_at.0,
    })
}

fn payload_bytes(new: &NewSubmission) -> i64 {
    i64::try_from(new.payload.len()).unwrap_or(i64::MAX)
}
