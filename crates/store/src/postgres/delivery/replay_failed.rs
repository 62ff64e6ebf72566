//! Puts a failed delivery back into the queue (G5).
//!
//! One conditional update: of any number of operators one wins. It answers applied or not applied;
//! why not is read by a second statement, whose snapshot sees the winner.

mod explain;

use domain::id::{ApplicationKey, DeliveryId};

use crate::StoreError;
use crate::delivery::Replay;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;

pub(in crate::postgres) async fn replay_failed(
    pool: &Pool,
    application: ApplicationKey,
    delivery: DeliveryId,
) -> Result<Replay, StoreError> {
    let replayed = after_conflict(|| async {
        sqlx::query_scalar!(
            "-- postgres::delivery::replay_failed
            UPDATE fencepost.deliveries d SET
                state = 1, reason = NULL, due_at = statement_timestamp(), cycle_attempts = 0,
                lapses = 0, lapse_since = NULL, claim_token = NULL
            WHERE d.id = $2 AND d.state = 3 AND d.due_at > statement_timestamp()
                AND EXISTS (
                    SELECT FROM fencepost.endpoints e
                    JOIN fencepost.endpoint_schedule s ON s.endpoint = e.key
                    WHERE e.key = d.endpoint AND e.application = $1 AND s.enabled AND NOT s.deleted
                )
                AND EXISTS (
                    SELECT FROM fencepost.submissions p
                    WHERE p.endpoint = d.endpoint AND p.id = d.submission AND p.payload IS NOT NULL
                )
            RETURNING d.id",
            application.as_uuid(),
            delivery.as_uuid(),
        )
        .fetch_optional(pool)
        .await
    })
    .await
    .map_err(|error| store_error("delivery::replay_failed", error))?;
    match replayed {
        Some(_) => Ok(Replay::Replayed),
        None => explain::explain(pool, application, delivery).await,
    }
}
