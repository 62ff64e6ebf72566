//! Reads the receipt that was there.

use domain::receipt::ReceiptKey;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::postgres::pool::Pool;

pub(super) struct Stored {
    pub(super) fingerprint: Vec<u8>,
    pub(super) submission: Option<Uuid>,
    pub(super) processed_at: OffsetDateTime,
}

pub(super) async fn read_stored(
    pool: &Pool,
    key: &ReceiptKey,
) -> Result<Option<Stored>, sqlx::Error> {
    sqlx::query_as!(
        Stored,
        "-- postgres::source::receive::read_stored
        SELECT fingerprint, submission, processed_at FROM fencepost.receipts
        WHERE source = $1 AND event_id = $2",
        key.source(),
        key.event_id(),
    )
    .fetch_optional(pool)
    .await
}
