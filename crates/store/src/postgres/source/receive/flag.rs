//! Marks a receipt under whose id other content came. Marking it again changes nothing.

use domain::receipt::ReceiptKey;

use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;

pub(super) async fn flag(pool: &Pool, key: &ReceiptKey) -> Result<(), sqlx::Error> {
    after_conflict(|| async {
        sqlx::query!(
            "-- postgres::source::receive::flag
            UPDATE fencepost.receipts SET status = 2
            WHERE source = $1 AND event_id = $2 AND status = 1",
            key.source(),
            key.event_id(),
        )
        .execute(pool)
        .await
    })
    .await
    .map(drop)
}
