//! Deliveries of an application, newest first.
//!
//! * The newest of each endpoint are taken from its indexes and merged, so that the size of other
//!   applications does not matter. All bounds are always given: as `$4 IS NULL OR …` they would be no
//!   condition of the index under a generic plan, and a late page would read all before it.
//! * A rare state has a part of its own, from an index of its own: among a million others it would be
//!   looked for through all of them. A part that the state rules out is never run. What is pending or
//!   delivered is read past what is not, since an index on it would be paid for by every delivery.
//! * What is processing is read whole, through its leases, before it is sorted: it is never more than
//!   the endpoint's cap.

use domain::id::EndpointKey;

use crate::delivery::{DeliveryFilter, DeliveryView};
use crate::postgres::codec::{DeliveryRow, bounds};
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::{StoreError, codes};

pub(in crate::postgres) async fn list(
    pool: &Pool,
    filter: DeliveryFilter,
) -> Result<Vec<DeliveryView>, StoreError> {
    let (lowest, highest) = bounds(filter.endpoint.map(EndpointKey::as_uuid));
    let rows = sqlx::query_as!(
        DeliveryRow,
        r#"-- postgres::delivery::list
        SELECT q.id AS "id!", q.endpoint AS "endpoint!", e.id AS endpoint_id,
            q.submission AS "submission!", q.state AS "state!", q.reason,
            q.attempts AS "attempts!", q.cycle_attempts AS "cycle_attempts!", q.lapses AS "lapses!",
            q.due_at, q.claim_expires_at, q.claimed_by,
            q.cancel_requested AS "cancel_requested!", q.settled_at
        FROM fencepost.endpoints e
        CROSS JOIN LATERAL (
            (SELECT d.id, d.endpoint, d.submission, d.state, d.reason, d.attempts,
                d.cycle_attempts, d.lapses, d.due_at, d.claim_expires_at, d.claimed_by,
                d.cancel_requested_at IS NOT NULL AS cancel_requested, NULL::timestamptz AS settled_at
            FROM fencepost.deliveries d
            WHERE ($3::smallint IS NULL OR $3 = 1)
                AND d.endpoint = e.key AND ($3 IS NULL OR d.state = $3)
                AND d.id >= $4 AND d.id < $5
            ORDER BY d.id DESC LIMIT $6)
            UNION ALL
            (SELECT d.*, NULL
            FROM (
                SELECT d.id, d.endpoint, d.submission, d.state, d.reason, d.attempts,
                    d.cycle_attempts, d.lapses, d.due_at, d.claim_expires_at, d.claimed_by,
                    d.cancel_requested_at IS NOT NULL
                FROM fencepost.deliveries d
                WHERE d.endpoint = e.key AND d.state = 2 AND d.claim_expires_at >= '-infinity'
                OFFSET 0
            ) d
            WHERE $3 = 2 AND d.id >= $4 AND d.id < $5
            ORDER BY d.id DESC LIMIT $6)
            UNION ALL
            (SELECT d.id, d.endpoint, d.submission, d.state, d.reason, d.attempts,
                d.cycle_attempts, d.lapses, d.due_at, d.claim_expires_at, d.claimed_by,
                d.cancel_requested_at IS NOT NULL, NULL
            FROM fencepost.deliveries d
            WHERE $3 = 3 AND d.endpoint = e.key AND d.state = 3 AND d.id >= $4 AND d.id < $5
            ORDER BY d.id DESC LIMIT $6)
            UNION ALL
            (SELECT d.id, d.endpoint, d.submission, d.state, d.reason, d.attempts,
                d.cycle_attempts, 0, NULL, NULL, d.claimed_by, false, d.settled_at
            FROM fencepost.settled_deliveries d
            WHERE ($3 IS NULL OR $3 = 4)
                AND d.endpoint = e.key AND ($3 IS NULL OR d.state = $3)
                AND d.id >= $4 AND d.id < $5
            ORDER BY d.id DESC LIMIT $6)
            UNION ALL
            (SELECT d.id, d.endpoint, d.submission, d.state, d.reason, d.attempts,
                d.cycle_attempts, 0, NULL, NULL, d.claimed_by, false, d.settled_at
            FROM fencepost.settled_deliveries d
            WHERE $3 IN (5, 6) AND d.endpoint = e.key AND d.state = $3 AND d.state <> 4
                AND d.id >= $4 AND d.id < $5
            ORDER BY d.id DESC LIMIT $6)
        ) q
        WHERE e.application = $1 AND e.key >= $2 AND e.key <= $7
        ORDER BY q.id DESC
        LIMIT $6"#,
        filter.application.as_uuid(),
        lowest,
        filter.state.map(codes::of_state),
        filter.created.lowest(),
        filter.created.below(filter.page),
        i64::from(filter.page.limit),
        highest,
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("delivery::list", error))?;
    rows.into_iter().map(DeliveryView::try_from).collect()
}
