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

const OPERATION: &str = "delivery::replay_failed";
/// What stood in the way was gone when it was looked at: that happens once, and hardly ever twice.
const ROUNDS: u32 = 3;

pub(in crate::postgres) async fn replay_failed(
    pool: &Pool,
    application: ApplicationKey,
    delivery: DeliveryId,
) -> Result<Replay, StoreError> {
    for _ in 0..ROUNDS {
        if replay(pool, application, delivery).await? {
            return Ok(Replay::Replayed);
        }
        if let Some(refusal) = explain::explain(pool, application, delivery).await? {
            return Ok(refusal);
        }
    }
    let source = format!("it became replayable and did not stay so, {ROUNDS} times").into();
    Err(StoreError::Contended { operation: OPERATION, source })
}

async fn replay(
    pool: &Pool,
    application: ApplicationKey,
    delivery: DeliveryId,
) -> Result<bool, StoreError> {
    after_conflict(|| async {
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
    .map(|replayed| replayed.is_some())
    .map_err(|error| store_error(OPERATION, error))
}
