//! Reads what a key stands for.

use domain::id::SubmissionId;
use domain::submission::IdempotencyKey;
use sqlx::FromRow;
use uuid::Uuid;

use crate::sqlite::codec::{self, UnixMicros, corrupt};
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::Writing;
use crate::submission::{Accepted, NewSubmission};

/// What the key of a submission stands for.
pub(in crate::sqlite::submission) enum Winner {
    /// The same content, with the answer that it got.
    Same(Accepted),
    /// Other content.
    Other,
    /// Something whose time is over.
    Expired,
    /// Nothing.
    None,
}

#[derive(FromRow)]
struct Row {
    fingerprint: Vec<u8>,
    submission: Uuid,
    deliveries: String,
    received_at: UnixMicros,
    expires_at: UnixMicros,
}

pub(in crate::sqlite::submission) async fn read_winner(
    tx: &mut impl Writing,
    submission: &NewSubmission,
    key: &IdempotencyKey,
) -> Result<Winner, Fault> {
    let row: Option<Row> = sqlx::query_as(
        "-- sqlite::submission::accept::read_winners::read_winner
        SELECT fingerprint, submission, deliveries, received_at, expires_at
        FROM idempotency_keys
        WHERE scope = ?1 AND key = ?2",
    )
    .bind(submission.endpoint.as_uuid())
    .bind(key.as_str())
    .fetch_optional(tx.connection())
    .await?;
    Ok(match row {
        None => Winner::None,
        Some(row) if row.expires_at.0 <= tx.now() => Winner::Expired,
        Some(row) if row.fingerprint != submission.fingerprint.as_bytes() => Winner::Other,
        Some(row) => Winner::Same(Accepted {
            submission: SubmissionId::from_uuid(row.submission),
            deliveries: codec::deliveries(&row.deliveries)
                .ok_or_else(|| corrupt("idempotency_keys", "deliveries", key))?,
            received_at: row.received_at.0,
        }),
    })
}
