//! Accepts submissions: each is stored with its delivery, or answered with what its key stands for.
//!
//! They are taken one after another in the order of the input, so of equal keys in one call the
//! first wins. One transaction holds them all, and the write lock makes the key the authority:
//! nobody can take it between the look at it and the insert.

pub(super) mod forget_expired_keys;
pub(in crate::sqlite) mod insert_new;
pub(super) mod read_winners;

use std::time::Duration;

use domain::id::EndpointKey;

use self::forget_expired_keys::forget_expired_key;
use self::insert_new::insert_new;
use self::read_winners::{Winner, read_winner};
use crate::StoreError;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{Writer, Writing};
use crate::submission::{Acceptance, NewSubmission};

pub(in crate::sqlite) async fn accept(
    writer: &Writer,
    window: Duration,
    submissions: &[NewSubmission],
) -> Result<Vec<Acceptance>, StoreError> {
    let submissions = submissions.to_vec();
    writer
        .run("submission::accept", move |tx| {
            Box::pin(async move {
                let mut answers = Vec::with_capacity(submissions.len());
                for submission in &submissions {
                    answers.push(accept_one(tx, window, submission).await?);
                }
                Ok(answers)
            })
        })
        .await
}

pub(super) async fn accept_one(
    tx: &mut impl Writing,
    window: Duration,
    submission: &NewSubmission,
) -> Result<Acceptance, Fault> {
    if !is_live(tx, submission.endpoint).await? {
        return Ok(Acceptance::EndpointMissing);
    }
    if let Some(key) = &submission.idempotency_key {
        match read_winner(tx, submission, key).await? {
            Winner::None => {}
            Winner::Expired => forget_expired_key(tx, submission.endpoint, key).await?,
            // Our own: an earlier try was committed and its answer was lost.
            Winner::Same(accepted) if accepted.submission == submission.id => {
                return Ok(Acceptance::Accepted(accepted));
            }
            Winner::Same(accepted) => return Ok(Acceptance::Replayed(accepted)),
            Winner::Other => return Ok(Acceptance::Conflicted),
        }
    }
    insert_new(tx, window, submission).await.map(Acceptance::Accepted)
}

async fn is_live(tx: &mut impl Writing, endpoint: EndpointKey) -> Result<bool, Fault> {
    let live = sqlx::query_scalar(
        "-- sqlite::submission::accept::is_live
        SELECT EXISTS (SELECT 1 FROM endpoints WHERE key = ?1 AND deleted_at IS NULL)",
    )
    .bind(endpoint.as_uuid())
    .fetch_one(tx.connection())
    .await?;
    Ok(live)
}
