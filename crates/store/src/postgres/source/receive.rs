//! Stores a verified event once: its receipt, submission and delivery, all three or none (G9).
//!
//! 1. [`insert_first`] writes all three in one statement. The receipt's primary key is the authority: of
//!    any number of concurrent copies one is stored. The others wait for its commit, at most as long as
//!    [`PATIENCE`](crate::receipt::PATIENCE).
//! 2. [`read_stored`] tells the others what was stored. It has to be a second statement, whose snapshot
//!    is younger than the wait. A receipt that names our own submission is an earlier try of ours whose
//!    answer was lost.
//! 3. [`flag`] marks a receipt under whose id other content came.
//!
//! A day that has no partition is made, and the event tried once more.

mod flag;
mod insert_first;
mod read_stored;

use self::insert_first::Inserted;
use crate::StoreError;
use crate::postgres::errors::{sqlstate, sqlstate_of, store_error};
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::postgres::schema::partitions;
use crate::source::{NewReception, Reception};
use crate::submission::Accepted;

const OPERATION: &str = "source::receive";
/// How often the receipt is written anew that was deleted between both statements.
const ROUNDS: u32 = 3;

pub(in crate::postgres) async fn receive(
    pool: &Pool,
    new: &NewReception,
) -> Result<Reception, StoreError> {
    let mut answer = receive_once(pool, new).await;
    if answer.as_ref().is_err_and(partitions::is_missing)
        && partitions::ensure_of(pool, &[new.submission.id.as_uuid()]).await
    {
        answer = receive_once(pool, new).await;
    }
    match answer {
        Err(error) if sqlstate_of(&error).as_deref() == Some(sqlstate::LOCK_NOT_AVAILABLE) => {
            Ok(Reception::InProgress)
        }
        answer => answer.map_err(|error| store_error(OPERATION, error)),
    }
}

async fn receive_once(pool: &Pool, new: &NewReception) -> Result<Reception, sqlx::Error> {
    let (submission, delivery) = (new.submission.id, new.submission.delivery);
    for _ in 0..ROUNDS {
        let accepted = |received_at| {
            Reception::First(Accepted { submission, deliveries: vec![delivery], received_at })
        };
        match after_conflict(|| insert_first::insert_first(pool, new)).await? {
            Inserted::First { received_at } => return Ok(accepted(received_at)),
            Inserted::Missing => return Ok(Reception::Missing),
            Inserted::Taken => {}
        }
        let Some(stored) = read_stored::read_stored(pool, &new.receipt.key).await? else {
            continue;
        };
        if stored.submission == Some(submission.as_uuid()) {
            return Ok(accepted(stored.processed_at));
        }
        if stored.fingerprint == new.receipt.fingerprint.as_bytes() {
            return Ok(Reception::Duplicate);
        }
        flag::flag(pool, &new.receipt.key).await?;
        return Ok(Reception::Conflicted);
    }
    Ok(Reception::InProgress)
}
