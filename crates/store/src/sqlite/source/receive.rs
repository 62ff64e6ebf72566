//! Stores a verified event once: its receipt, submission and delivery, all three or none (G9).
//!
//! One transaction holds all of it, and the write lock makes the receipt the authority: nobody can write
//! one between the look at it and the insert.

mod flag;
mod insert_first;
mod read_stored;

use std::time::Duration;

use crate::StoreError;
use crate::source::{NewReception, Reception};
use crate::sqlite::errors::Fault;
use crate::sqlite::submission::accept::insert_new::insert_new;
use crate::sqlite::writer::{WriteTransaction, Writer};
use crate::submission::Accepted;

pub(in crate::sqlite) async fn receive(
    writer: &Writer,
    new: &NewReception,
) -> Result<Reception, StoreError> {
    let new = new.clone();
    writer
        .run("source::receive", move |tx| Box::pin(async move { receive_once(tx, &new).await }))
        .await
}

async fn receive_once(tx: &mut WriteTransaction, new: &NewReception) -> Result<Reception, Fault> {
    if !insert_first::is_live(tx, new).await? {
        return Ok(Reception::Missing);
    }
    let (submission, delivery) = (new.submission.id, new.submission.delivery);
    if let Some(stored) = read_stored::read_stored(tx, &new.receipt.key).await? {
        if stored.submission == Some(submission.as_uuid()) {
            // Our own: an earlier try was committed and its answer was lost.
            let (deliveries, received_at) = (vec![delivery], stored.processed_at.0);
            return Ok(Reception::First(Accepted { submission, deliveries, received_at }));
        }
        if stored.fingerprint == new.receipt.fingerprint.as_bytes() {
            return Ok(Reception::Duplicate);
        }
        flag::flag(tx, &new.receipt.key).await?;
        return Ok(Reception::Conflicted);
    }
    insert_first::insert_first(tx, new).await?;
    // It has no idempotency key, so there is none to be remembered for a time.
    let accepted = insert_new(tx, Duration::ZERO, &new.submission).await?;
    Ok(Reception::First(accepted))
}
