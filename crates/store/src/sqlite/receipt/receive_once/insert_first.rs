//! Writes the receipt, unless one is there.

use domain::label::Label;
use sqlx::SqliteConnection;

use crate::receipt::NewReceipt;
use crate::sqlite::codec::UnixMicros;

/// Whether it was written.
pub(super) async fn insert_first(
    connection: &mut SqliteConnection,
    receipt: &NewReceipt,
) -> Result<bool, sqlx::Error> {
    let written = sqlx::query(
        "-- sqlite::receipt::receive_once::insert_first
        INSERT INTO receipts (source, event_id, fingerprint, resource_id, action, sent_at,
            received_at, processed_at)
        SELECT ?1, ?2, ?3, ?4, ?5, ?6, now, now
        FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now)
        WHERE true
        ON CONFLICT DO NOTHING",
    )
    .bind(receipt.key.source())
    .bind(receipt.key.event_id())
    .bind(receipt.fingerprint.as_bytes().as_slice())
    .bind(receipt.resource_id.as_ref().map(Label::as_str))
    .bind(receipt.action.as_ref().map(Label::as_str))
    .bind(receipt.sent_at.map(UnixMicros))
    .execute(connection)
    .await?;
    Ok(written.rows_affected() > 0)
}
