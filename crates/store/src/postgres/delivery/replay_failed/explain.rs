//! Why a delivery was not replayed, as far as that can be seen afterwards.
//!
//! It is read after the refusal and may see what was done since. Each answer is true of what it saw; that
//! nothing stands in the way any more is no answer, and the replay is tried again.

use domain::delivery::{CancelReason, StateName};
use domain::id::{ApplicationKey, DeliveryId};
use uuid::Uuid;

use crate::delivery::Replay;
use crate::postgres::codec::corrupt;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::{StoreError, codes};

pub(super) async fn explain(
    pool: &Pool,
    application: ApplicationKey,
    delivery: DeliveryId,
) -> Result<Option<Replay>, StoreError> {
    let row = sqlx::query!(
        r#"-- postgres::delivery::replay_failed::explain
        SELECT q.state AS "state!", (s.enabled AND NOT s.deleted) AS "open!",
            q.due_at <= statement_timestamp() AS over, q.reason, p.id AS "kept?: Uuid",
            p.erased_at IS NOT NULL AS "erased!"
        FROM (
            SELECT d.endpoint, d.submission, d.state, d.reason, d.due_at
            FROM fencepost.deliveries d WHERE d.id = $2
            UNION ALL
            SELECT d.endpoint, d.submission, d.state, d.reason, NULL
            FROM fencepost.settled_deliveries d WHERE d.id = $2
        ) q
        CROSS JOIN LATERAL (
            SELECT o.id FROM fencepost.endpoints o
            WHERE o.key = q.endpoint AND o.application = $1 OFFSET 0
        ) e
        JOIN fencepost.endpoint_schedule s ON s.endpoint = q.endpoint
        LEFT JOIN fencepost.submissions p ON p.endpoint = q.endpoint AND p.id = q.submission"#,
        application.as_uuid(),
        delivery.as_uuid(),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("delivery::replay_failed", error))?;
    let Some(row) = row else { return Ok(Some(Replay::Missing)) };
    let state = codes::state(row.state).ok_or_else(|| corrupt("deliveries", "state", delivery))?;
    let cancelled_because = row.reason.and_then(codes::cancel_reason);
    Ok(Some(match state {
        StateName::Cancelled if cancelled_because == Some(CancelReason::PayloadErased) => {
            Replay::PayloadErased
        }
        StateName::Expired => Replay::Expired,
        StateName::Failed if row.over == Some(true) => Replay::Expired,
        StateName::Failed if row.kept.is_none() => Replay::PayloadExpired,
        StateName::Failed if row.erased => Replay::PayloadErased,
        StateName::Failed if !row.open => Replay::EndpointDisabled,
        StateName::Failed => return Ok(None),
        other => Replay::NotReplayable(other),
    }))
}
