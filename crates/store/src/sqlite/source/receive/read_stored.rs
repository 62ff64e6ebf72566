//! Reads the receipt that is there.

use domain::receipt::ReceiptKey;
use sqlx::FromRow;
use uuid::Uuid;

use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::WriteTransaction;

#[derive(FromRow)]
pub(super) struct Stored {
    pub(super) fingerprint: Vec<u8>,
    pub(super) submission: Option<Uuid>,
    pub(super) processed_at: UnixMicros,
}

pub(super) async fn read_stored(
    tx: &mut WriteTransaction,
    key: &ReceiptKey,
) -> Result<Option<Stored>, Fault> {
    let stored = sqlx::query_as(
        "-- sqlite::source::receive::read_stored
        SELECT fingerprint, submission, processed_at FROM receipts
        WHERE source = ?1 AND event_id = ?2",
    )
    .bind(key.source())
    .bind(key.event_id())
    .fetch_optional(tx.connection())
    .await?;
    Ok(stored)
}
