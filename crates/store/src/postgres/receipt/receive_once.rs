//! Processes an inbound event once: writes its receipt on the caller's transaction.
//!
//! The primary key decides. A copy that meets another's uncommitted receipt waits for its end, and then
//! is the first after a rollback, or reads what was committed: with a second statement, whose snapshot is
//! younger than the wait. In REPEATABLE READ and stricter levels it cannot be: whoever waited gets 40001,
//! [`StoreError::Contended`], and runs the whole transaction again.

mod insert_first;
mod read_processed;

use std::time::Duration;

use sqlx::PgConnection;

use crate::StoreError;
use crate::postgres::errors::{sqlstate, sqlstate_of, store_error};
use crate::receipt::{NewReceipt, Receiving, told_of};

const OPERATION: &str = "receipt::receive_once";
/// How often the receipt is written anew that was deleted between both statements.
const ROUNDS: u32 = 3;

/// Says whether the caller is the first to process this event, on the caller's open transaction.
///
/// It waits for a concurrent copy at most as long as `patience`, and leaves the transaction's own
/// `lock_timeout` as it was. After an error, and after [`Receiving::InProgress`], the transaction can
/// only be rolled back.
pub async fn receive_once_in_tx(
    connection: &mut PgConnection,
    receipt: &NewReceipt,
    patience: Duration,
) -> Result<Receiving, StoreError> {
    for _ in 0..ROUNDS {
        match insert_first::insert_first(connection, receipt, patience).await {
            Ok(true) => return Ok(Receiving::First),
            Ok(false) => {}
            Err(error) if sqlstate_of(&error).as_deref() == Some(sqlstate::LOCK_NOT_AVAILABLE) => {
                return Ok(Receiving::InProgress);
            }
            Err(error) => return Err(store_error(OPERATION, error)),
        }
        let processed = read_processed::read_processed(connection, &receipt.key)
            .await
            .map_err(|error| store_error(OPERATION, error))?;
        if let Some((fingerprint, processed_at)) = processed {
            return Ok(told_of(&receipt.fingerprint, &fingerprint, processed_at));
        }
    }
    Ok(Receiving::InProgress)
}
