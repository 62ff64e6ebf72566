//! Reads the receipt that was there.

use domain::receipt::ReceiptKey;
use sqlx::SqliteConnection;
use time::OffsetDateTime;

use crate::sqlite::codec::UnixMicros;

/// Its fingerprint, and when it was processed.
pub(super) async fn read_processed(
    connection: &mut SqliteConnection,
    key: &ReceiptKey,
) -> Result<Option<(Vec<u8>, OffsetDateTime)>, sqlx::Error> {
    let row: Option<(Vec<u8>, UnixMicros)> = sqlx::query_as(
        "-- sqlite::receipt::receive_once::read_processed
        SELECT fingerprint, processed_at FROM receipts WHERE source = ?1 AND event_id = ?2",
    )
    .bind(key.source())
    .bind(key.event_id())
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|(fingerprint, UnixMicros(processed_at))| (fingerprint, processed_at)))
}
