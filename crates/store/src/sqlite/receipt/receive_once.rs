//! Processes an inbound event once: writes its receipt on the caller's transaction.
//!
//! The transaction holds the write lock, so a concurrent copy waits where it begins its own.

mod insert_first;
mod read_processed;

use sqlx::SqliteConnection;

use crate::StoreError;
use crate::receipt::{NewReceipt, Receiving, told_of};
use crate::sqlite::errors::{is_busy, store_error};

const OPERATION: &str = "receipt::receive_once";

/// Says whether the caller is the first to process this event, on the caller's open transaction.
///
/// That is one of [`begin`](crate::sqlite::begin), which is where a concurrent copy is waited
/// for. In one that has read before it writes, another's write is met here, and the answer is
/// [`Receiving::InProgress`]: the transaction can only be rolled back.
pub async fn receive_once_in_tx(
    connection: &mut SqliteConnection,
    receipt: &NewReceipt,
) -> Result<Receiving, StoreError> {
    match insert_first::insert_first(connection, receipt).await {
        Ok(true) => return Ok(Receiving::First),
        Ok(false) => {}
        Err(error) if is_busy(&error) => return Ok(Receiving::InProgress),
        Err(error) => return Err(store_error(OPERATION, error)),
    }
    let processed = read_processed::read_processed(connection, &receipt.key)
        .await
        .map_err(|error| store_error(OPERATION, error))?;
    Ok(processed.map_or(Receiving::InProgress, |(fingerprint, processed_at)| {
        told_of(&receipt.fingerprint, &fingerprint, processed_at)
    }))
}
