//! Stores the submission of a delivery once more, with a delivery of its own.
//!
//! One transaction looks whether there is anything to send, what the key stands for, and copies.

mod copy;

use std::time::Duration;

use domain::id::{EndpointKey, SubmissionId};
use sqlx::FromRow;
use uuid::Uuid;

use self::copy::copy;
use super::accept::forget_expired_keys::forget_expired_key;
use super::accept::read_winners::{Winner, read_winner};
use crate::StoreError;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};
use crate::submission::{Accepted, NewResend, Resend, Resent};

pub(in crate::sqlite) async fn resend(
    writer: &Writer,
    window: Duration,
    resend: &NewResend,
) -> Result<Resend, StoreError> {
    let resend = resend.clone();
    writer
        .run("submission::resend", move |tx| {
            Box::pin(async move { resend_in_tx(tx, window, &resend).await })
        })
        .await
}

async fn resend_in_tx(
    tx: &mut WriteTransaction,
    window: Duration,
    resend: &NewResend,
) -> Result<Resend, Fault> {
    let Some(source) = find(tx, resend).await? else { return Ok(Resend::Missing) };
    let endpoint = EndpointKey::from_uuid(source.endpoint);
    let resend_of = SubmissionId::from_uuid(source.submission);
    match (source.there, source.erased) {
        (false, _) => return Ok(Resend::PayloadExpired),
        (true, true) => return Ok(Resend::PayloadErased),
        (true, false) if !source.open => return Ok(Resend::EndpointDisabled),
        (true, false) => {}
    }
    let endpoint_id = source.endpoint_id;
    let resent = |accepted| Resent { accepted, endpoint_id, resend_of };
    let keyed = resend.keyed(endpoint, resend_of);
    if let Some(key) = &keyed.idempotency_key {
        match read_winner(tx, &keyed, key).await? {
            Winner::None => {}
            Winner::Expired => forget_expired_key(tx, endpoint, key).await?,
            // Our own: an earlier try was committed and its answer was lost.
            Winner::Same(accepted) if accepted.submission == keyed.id => {
                return Ok(Resend::Accepted(resent(accepted)));
            }
            Winner::Same(accepted) => return Ok(Resend::Replayed(resent(accepted))),
            Winner::Other => return Ok(Resend::Conflicted),
        }
    }
    copy(tx, window, &keyed, resend_of).await?;
    let (submission, deliveries, received_at) = (keyed.id, vec![keyed.delivery], tx.now());
    Ok(Resend::Accepted(resent(Accepted { submission, deliveries, received_at })))
}

#[derive(FromRow)]
struct Source {
    endpoint: Uuid,
    endpoint_id: String,
    submission: Uuid,
    open: bool,
    there: bool,
    erased: bool,
}

async fn find(tx: &mut WriteTransaction, resend: &NewResend) -> Result<Option<Source>, Fault> {
    let source = sqlx::query_as(
        "-- sqlite::submission::resend::find
        SELECT q.endpoint, e.id AS endpoint_id, q.submission,
            COALESCE(c.enabled AND NOT c.deleted, 0) AS open, s.id IS NOT NULL AS there,
            s.erased_at IS NOT NULL AS erased
        FROM (
            SELECT d.endpoint, d.submission FROM deliveries d WHERE d.id = ?2
            UNION ALL
            SELECT d.endpoint, d.submission FROM settled_deliveries d WHERE d.id = ?2
        ) q
        JOIN endpoints e ON e.key = q.endpoint AND e.application = ?1
        LEFT JOIN endpoint_schedule c ON c.endpoint = q.endpoint
        LEFT JOIN submissions s ON s.endpoint = q.endpoint AND s.id = q.submission",
    )
    .bind(resend.application.as_uuid())
    .bind(resend.delivery.as_uuid())
    .fetch_optional(tx.connection())
    .await?;
    Ok(source)
}
