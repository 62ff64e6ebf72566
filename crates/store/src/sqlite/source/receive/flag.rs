//! Marks a receipt under whose id other content came. Marking it again changes nothing.

use domain::receipt::ReceiptKey;

use crate::sqlite::errors::Fault;
use crate::sqlite::writer::WriteTransaction;

pub(super) async fn flag(tx: &mut WriteTransaction, key: &ReceiptKey) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::source::receive::flag
        UPDATE receipts SET status = 2 WHERE source = ?1 AND event_id = ?2 AND status = 1",
    )
    .bind(key.source())
    .bind(key.event_id())
    .execute(tx.connection())
    .await?;
    Ok(())
}
