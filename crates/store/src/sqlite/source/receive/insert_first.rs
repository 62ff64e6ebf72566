//! Writes the receipt of an event that has none.

use domain::label::Label;

use crate::source::{NewReception, headers_json};
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::WriteTransaction;

/// Whether the source and its endpoint are there.
pub(super) async fn is_live(tx: &mut WriteTransaction, new: &NewReception) -> Result<bool, Fault> {
    let live = sqlx::query_scalar(
        "-- sqlite::source::receive::insert_first::is_live
        SELECT EXISTS (SELECT 1 FROM sources WHERE key = ?1 AND deleted_at IS NULL)
            AND EXISTS (SELECT 1 FROM endpoints WHERE key = ?2 AND deleted_at IS NULL)",
    )
    .bind(new.source.as_uuid())
    .bind(new.submission.endpoint.as_uuid())
    .fetch_one(tx.connection())
    .await?;
    Ok(live)
}

pub(super) async fn insert_first(
    tx: &mut WriteTransaction,
    new: &NewReception,
) -> Result<(), Fault> {
    let receipt = &new.receipt;
    sqlx::query(
        "-- sqlite::source::receive::insert_first
        INSERT INTO receipts (source, event_id, fingerprint, resource_id, action, sent_at,
            received_at, processed_at, submission, headers)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9)",
    )
    .bind(receipt.key.source())
    .bind(receipt.key.event_id())
    .bind(receipt.fingerprint.as_bytes().as_slice())
    .bind(receipt.resource_id.as_ref().map(Label::as_str))
    .bind(receipt.action.as_ref().map(Label::as_str))
    .bind(receipt.sent_at.map(UnixMicros))
    .bind(UnixMicros(tx.now()))
    .bind(new.submission.id.as_uuid())
    .bind(headers_json(&new.headers))
    .execute(tx.connection())
    .await?;
    Ok(())
}
