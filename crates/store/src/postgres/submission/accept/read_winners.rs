//! Reads what taken keys stand for: in a statement of its own, whose snapshot sees the winners.

use domain::id::SubmissionId;
use domain::submission::IdempotencyKey;
use sqlx::PgExecutor;

use crate::postgres::codec;
use crate::submission::{Accepted, NewSubmission};

/// What the key of one row of the batch stands for.
pub(in crate::postgres::submission) enum Winner {
    /// The same content, with the answer that it got.
    Same(Accepted),
    /// Other content.
    Other,
    /// Something whose time is over.
    Expired,
    /// Nothing any more.
    Gone,
}

pub(in crate::postgres::submission) async fn read_winners(
    executor: impl PgExecutor<'_>,
    batch: &[&NewSubmission],
) -> Result<Vec<Winner>, sqlx::Error> {
    let scopes: Vec<_> = batch.iter().map(|s| s.endpoint.as_uuid()).collect();
    let keys: Vec<Option<&str>> =
        batch.iter().map(|s| s.idempotency_key.as_ref().map(IdempotencyKey::as_str)).collect();
    let fingerprints: Vec<&[u8]> =
        batch.iter().map(|s| s.fingerprint.as_bytes().as_slice()).collect();
    let rows = sqlx::query!(
        r#"-- postgres::submission::accept::read_winners
        SELECT k.fingerprint = r.fingerprint AS same,
            k.expires_at <= statement_timestamp() AS expired,
            k.submission AS "submission?", k.deliveries AS "deliveries?",
            k.received_at AS "received_at?"
        FROM unnest($1::uuid[], $2::text[], $3::bytea[]) WITH ORDINALITY
            AS r(scope, key, fingerprint, n)
        LEFT JOIN fencepost.idempotency_keys k ON k.scope = r.scope AND k.key = r.key COLLATE "C"
        ORDER BY r.n"#,
        &scopes,
        &keys as &[Option<&str>],
        &fingerprints as &[&[u8]],
    )
    .fetch_all(executor)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| match (row.submission, row.deliveries, row.received_at) {
            (Some(_), _, _) if row.expired == Some(true) => Winner::Expired,
            (Some(submission), Some(deliveries), Some(received_at)) if row.same == Some(true) => {
                Winner::Same(Accepted {
                    submission: SubmissionId::from_uuid(submission),
                    deliveries: codec::deliveries(deliveries),
                    received_at,
                })
            }
            (Some(_), _, _) => Winner::Other,
            (None, _, _) => Winner::Gone,
        })
        .collect())
}
