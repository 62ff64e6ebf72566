//! Reads the receipt that was there.

use domain::receipt::ReceiptKey;
use sqlx::PgConnection;
use time::OffsetDateTime;

/// Its fingerprint, and when it was processed.
pub(super) async fn read_processed(
    connection: &mut PgConnection,
    key: &ReceiptKey,
) -> Result<Option<(Vec<u8>, OffsetDateTime)>, sqlx::Error> {
    let row = sqlx::query!(
        "-- postgres::receipt::receive_once::read_processed
        SELECT fingerprint, processed_at FROM fencepost.receipts
        WHERE source = $1 AND event_id = $2",
        key.source(),
        key.event_id(),
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| (row.fingerprint, row.processed_at)))
}
