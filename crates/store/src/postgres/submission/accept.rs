//! Accepts submissions: each is stored with its delivery, or answered with what its key stands for.
//!
//! 1. [`insert_new`] stores all whose key is free. The unique key is the authority: of any number of
//!    concurrent copies one is stored, in one statement with its delivery.
//! 2. [`read_winners`] reads, for the others, what their key stands for. It has to be a second
//!    statement: under READ COMMITTED the first still looks through its own snapshot, taken before
//!    the winner committed.
//! 3. A key that has expired is deleted under that condition, and a key that is gone again (its
//!    holder rolled back, or it expired in between) is free: both are tried again, three rounds at
//!    most.
//!
//! A day that has no partition is made, and the batch tried once more.

pub(super) mod forget_expired_keys;
pub(super) mod insert_new;
pub(super) mod read_winners;

use std::time::Duration;

use crate::postgres::pool::Pool;

use self::read_winners::Winner;
use crate::StoreError;
use crate::postgres::errors::{sqlstate, sqlstate_of, store_error};
use crate::postgres::retry::after_conflict;
use crate::postgres::schema::partitions;
use crate::submission::{Acceptance, Accepted, NewSubmission};

const OPERATION: &str = "submission::accept";
pub(super) const ROUNDS: u32 = 3;

/// What a submission is held to, as far as it has a key.
#[derive(Debug, Clone, Copy)]
pub(in crate::postgres) struct KeyLimits {
    /// How long it is remembered.
    pub(in crate::postgres) window: Duration,
    /// How long it waits for another open transaction that holds the same key.
    pub(in crate::postgres) wait: Duration,
}

impl KeyLimits {
    /// The wait as PostgreSQL's `lock_timeout`, of which 0 would be for ever.
    pub(super) fn lock_timeout(self) -> String {
        format!("{}ms", self.wait.as_millis().max(1))
    }
}

pub(in crate::postgres) async fn accept(
    pool: &Pool,
    limits: KeyLimits,
    submissions: &[NewSubmission],
) -> Result<Vec<Acceptance>, StoreError> {
    let all: Vec<&NewSubmission> = submissions.iter().collect();
    let mut answers = accept_together(pool, limits, &all).await;
    if answers.as_ref().is_err_and(partitions::is_missing) {
        let ids: Vec<_> = all.iter().map(|submission| submission.id.as_uuid()).collect();
        if partitions::ensure_of(pool, &ids).await {
            answers = accept_together(pool, limits, &all).await;
        }
    }
    match answers {
        // One of the keys is held by an open transaction: its request alone has to wait for that.
        Err(error) if is_lock_timeout(&error) => {
            let mut answers = Vec::with_capacity(all.len());
            for one in all {
                answers.push(accept_alone(pool, limits, one).await?);
            }
            Ok(answers)
        }
        answer => answer.map_err(|error| store_error(OPERATION, error)),
    }
}

async fn accept_alone(
    pool: &Pool,
    limits: KeyLimits,
    submission: &NewSubmission,
) -> Result<Acceptance, StoreError> {
    match accept_together(pool, limits, &[submission]).await {
        Ok(mut answers) => Ok(answers.pop().unwrap_or(Acceptance::KeyInProgress)),
        Err(error) if is_lock_timeout(&error) && submission.idempotency_key.is_some() => {
            Ok(Acceptance::KeyInProgress)
        }
        Err(error) => Err(store_error(OPERATION, error)),
    }
}

pub(super) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    sqlstate_of(error).as_deref() == Some(sqlstate::LOCK_NOT_AVAILABLE)
}

async fn accept_together(
    pool: &Pool,
    limits: KeyLimits,
    submissions: &[&NewSubmission],
) -> Result<Vec<Acceptance>, sqlx::Error> {
    let mut answers: Vec<Option<Acceptance>> = vec![None; submissions.len()];
    let mut open: Vec<usize> = (0..submissions.len()).collect();
    let wait = limits.lock_timeout();
    for _ in 0..ROUNDS {
        if open.is_empty() {
            break;
        }
        let batch: Vec<&NewSubmission> =
            open.iter().filter_map(|index| submissions.get(*index).copied()).collect();
        let stored =
            after_conflict(|| insert_new::insert_new(pool, Some(&wait), limits.window, &batch))
                .await?;
        let mut losers = Vec::new();
        for ((index, submission), inserted) in open.iter().zip(&batch).zip(stored) {
            let answer = match inserted {
                insert_new::Inserted::Stored { received_at } => Acceptance::Accepted(Accepted {
                    submission: submission.id,
                    deliveries: vec![submission.delivery],
                    received_at,
                }),
                insert_new::Inserted::EndpointMissing => Acceptance::EndpointMissing,
                insert_new::Inserted::KeyTaken => {
                    losers.push((*index, *submission));
                    continue;
                }
            };
            set(&mut answers, *index, answer);
        }
        open = answer_losers(pool, &losers, &mut answers).await?;
    }
    // Three rounds and the key is still neither free nor taken: whoever asks again will know.
    Ok(answers.into_iter().map(|a| a.unwrap_or(Acceptance::KeyInProgress)).collect())
}

/// Answers those whose key is taken, and returns which have to be tried again.
async fn answer_losers(
    pool: &Pool,
    losers: &[(usize, &NewSubmission)],
    answers: &mut [Option<Acceptance>],
) -> Result<Vec<usize>, sqlx::Error> {
    if losers.is_empty() {
        return Ok(Vec::new());
    }
    let batch: Vec<&NewSubmission> = losers.iter().map(|(_, submission)| *submission).collect();
    let winners = read_winners::read_winners(pool, &batch).await?;
    let (mut again, mut expired) = (Vec::new(), Vec::new());
    for ((index, submission), winner) in losers.iter().zip(winners) {
        match winner {
            // Our own: an earlier try was committed and its answer was lost.
            Winner::Same(accepted) if accepted.submission == submission.id => {
                set(answers, *index, Acceptance::Accepted(accepted));
            }
            Winner::Same(accepted) => set(answers, *index, Acceptance::Replayed(accepted)),
            Winner::Other => set(answers, *index, Acceptance::Conflicted),
            Winner::Expired => {
                expired.push(*submission);
                again.push(*index);
            }
            Winner::Gone => again.push(*index),
        }
    }
    if !expired.is_empty() {
        after_conflict(|| forget_expired_keys::forget_expired_keys(pool, &expired)).await?;
    }
    Ok(again)
}

fn set(answers: &mut [Option<Acceptance>], index: usize, answer: Acceptance) {
    if let Some(slot) = answers.get_mut(index) {
        *slot = Some(answer);
    }
}
