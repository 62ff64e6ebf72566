//! Puts a failed delivery back into the queue.
//!
//! One conditional update: of any number of operators one wins. It answers applied or not applied;
//! why not is read by a second statement, in the same transaction.

mod explain;

use domain::id::{ApplicationKey, DeliveryId};

use self::explain::explain;
use crate::StoreError;
use crate::delivery::Replay;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(in crate::sqlite) async fn replay_failed(
    writer: &Writer,
    application: ApplicationKey,
    delivery: DeliveryId,
) -> Result<Replay, StoreError> {
    writer
        .run("delivery::replay_failed", move |tx| {
            Box::pin(async move {
                if replay(tx, application, delivery).await? {
                    Ok(Replay::Replayed)
                } else {
                    explain(tx, application, delivery).await
                }
            })
        })
        .await
}

async fn replay(
    tx: &mut WriteTransaction,
    application: ApplicationKey,
    delivery: DeliveryId,
) -> Result<bool, Fault> {
    let done = sqlx::query(
        "-- sqlite::delivery::replay_failed::replay
        UPDATE deliveries
        SET state = 1, reason = NULL, due_at = ?3, cycle_attempts = 0, lapses = 0,
            lapse_since = NULL, claim_token = NULL, claim_expires_at = NULL
        WHERE id = ?2 AND state = 3 AND due_at > ?3 AND cancel_requested_at IS NULL
            AND EXISTS (
                SELECT 1
                FROM endpoints e
                JOIN endpoint_schedule s ON s.endpoint = e.key
                WHERE e.key = deliveries.endpoint AND e.application = ?1
                    AND s.enabled AND NOT s.deleted
            )
            AND EXISTS (
                SELECT 1
                FROM submissions p
                WHERE p.endpoint = deliveries.endpoint AND p.id = deliveries.submission
                    AND p.payload IS NOT NULL
            )",
    )
    .bind(application.as_uuid())
    .bind(delivery.as_uuid())
    .bind(UnixMicros(tx.now()))
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() > 0)
}
