//! A delivery of an application.

use domain::id::{ApplicationKey, DeliveryId};

use crate::StoreError;
use crate::delivery::DeliveryView;
use crate::postgres::codec::DeliveryRow;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(in crate::postgres) async fn find(
    pool: &Pool,
    application: ApplicationKey,
    id: DeliveryId,
) -> Result<Option<DeliveryView>, StoreError> {
    // One statement, one snapshot: a delivery that is being settled stands in exactly one of both. Its
    // endpoint is looked up when it is found: an application may have more endpoints than rows have an id.
    let row = sqlx::query_as!(
        DeliveryRow,
        r#"-- postgres::delivery::find
        SELECT q.id AS "id!", q.endpoint AS "endpoint!", e.id AS "endpoint_id!",
            q.submission AS "submission!", q.state AS "state!", q.reason,
            q.attempts AS "attempts!", q.cycle_attempts AS "cycle_attempts!", q.lapses AS "lapses!",
            q.due_at, q.claim_expires_at, q.claimed_by,
            q.cancel_requested AS "cancel_requested!", q.settled_at
        FROM (
            SELECT d.id, d.endpoint, d.submission, d.state, d.reason, d.attempts,
                d.cycle_attempts, d.lapses, d.due_at, d.claim_expires_at, d.claimed_by,
                d.cancel_requested_at IS NOT NULL AS cancel_requested, NULL::timestamptz AS settled_at
            FROM fencepost.deliveries d WHERE d.id = $2
            UNION ALL
            SELECT d.id, d.endpoint, d.submission, d.state, d.reason, d.attempts,
                d.cycle_attempts, 0, NULL, NULL, d.claimed_by, false, d.settled_at
            FROM fencepost.settled_deliveries d WHERE d.id = $2
        ) q
        CROSS JOIN LATERAL (
            SELECT o.id FROM fencepost.endpoints o
            WHERE o.key = q.endpoint AND o.application = $1 OFFSET 0
        ) e"#,
        application.as_uuid(),
        id.as_uuid(),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("delivery::find", error))?;
    row.map(DeliveryView::try_from).transpose()
}
