//! Cancels a delivery that is owed or replayable, and marks one that a worker has.
//!
//! The row is locked first, so that a claim, a report or a replay that came before is seen. No slot
//! is freed: a delivery that holds one is only marked.

use domain::delivery::StateName;
use domain::id::{ApplicationKey, DeliveryId};

use crate::delivery::Cancellation;
use crate::postgres::codec::corrupt;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::{StoreError, codes};

pub(in crate::postgres) async fn cancel(
    pool: &Pool,
    application: ApplicationKey,
    delivery: DeliveryId,
) -> Result<Cancellation, StoreError> {
    let found = after_conflict(|| async {
        sqlx::query_scalar!(
            r#"-- postgres::delivery::cancel
            WITH l AS MATERIALIZED (
                SELECT d.endpoint, d.id, d.submission, d.attempts, d.cycle_attempts,
                    d.payload_bytes, d.state, d.claimed_by
                FROM fencepost.deliveries d
                WHERE d.id = $2 AND EXISTS (
                    SELECT FROM fencepost.endpoints e
                    WHERE e.key = d.endpoint AND e.application = $1
                )
                FOR UPDATE OF d
            ), gone AS (
                DELETE FROM fencepost.deliveries d
                WHERE d.id = ANY(ARRAY(SELECT id FROM l WHERE state IN (1, 3)))
                RETURNING d.id
            ), settled AS (
                INSERT INTO fencepost.settled_deliveries (endpoint, id, submission, settled_at,
                    attempts, cycle_attempts, payload_bytes, state, reason, claimed_by)
                SELECT l.endpoint, l.id, l.submission, statement_timestamp(), l.attempts,
                    l.cycle_attempts, l.payload_bytes, 5, 21, l.claimed_by
                FROM l JOIN gone ON gone.id = l.id
            ), marked AS (
                UPDATE fencepost.deliveries d
                SET cancel_requested_at = COALESCE(d.cancel_requested_at, statement_timestamp())
                WHERE d.id = ANY(ARRAY(SELECT id FROM l WHERE state = 2))
            )
            SELECT state FROM l"#,
            application.as_uuid(),
            delivery.as_uuid(),
        )
        .fetch_optional(pool)
        .await
    })
    .await
    .map_err(|error| store_error("delivery::cancel", error))?;
    let Some(code) = found else { return explain(pool, application, delivery).await };
    match codes::state(code) {
        Some(StateName::Pending | StateName::Failed) => Ok(Cancellation::Cancelled),
        Some(StateName::Processing) => Ok(Cancellation::Requested),
        _ => Err(corrupt("deliveries", "state", delivery)),
    }
}

/// It is in no state that can be cancelled: which is it?
async fn explain(
    pool: &Pool,
    application: ApplicationKey,
    delivery: DeliveryId,
) -> Result<Cancellation, StoreError> {
    let settled = sqlx::query_scalar!(
        "-- postgres::delivery::cancel::explain
        SELECT d.state
        FROM fencepost.settled_deliveries d
        JOIN fencepost.endpoints e ON e.key = d.endpoint AND e.application = $1
        WHERE d.id = $2",
        application.as_uuid(),
        delivery.as_uuid(),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("delivery::cancel", error))?;
    let Some(code) = settled else { return Ok(Cancellation::Missing) };
    codes::state(code)
        .map(Cancellation::NotCancellable)
        .ok_or_else(|| corrupt("settled_deliveries", "state", delivery))
}
