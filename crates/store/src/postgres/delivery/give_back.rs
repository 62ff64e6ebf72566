//! Gives back claims that were not sent: no lapse, no attempt, the old due time.
//!
//! `low_water` is lowered to that time, or the row would be invisible until the sweep. A cancellation
//! that was asked for meanwhile takes effect: nobody would claim the row again. A claim that is named
//! twice in one call is given back once, and frees one slot. Where it was the probe of an open circuit,
//! another can be made at once.

use domain::id::DeliveryId;
use uuid::Uuid;

use crate::StoreError;
use crate::delivery::HeldClaim;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;

pub(in crate::postgres) async fn give_back(
    pool: &Pool,
    claims: &[HeldClaim],
) -> Result<Vec<DeliveryId>, StoreError> {
    let endpoints: Vec<Uuid> = claims.iter().map(|claim| claim.endpoint.as_uuid()).collect();
    let deliveries: Vec<Uuid> = claims.iter().map(|claim| claim.delivery.as_uuid()).collect();
    let tokens: Vec<Uuid> = claims.iter().map(|claim| claim.token.as_uuid()).collect();
    after_conflict(|| async {
        sqlx::query_scalar!(
            r#"-- postgres::delivery::give_back
            WITH l AS MATERIALIZED (
                SELECT d.endpoint, d.id, d.submission, d.claim_token, d.due_at, d.attempts, d.cycle_attempts,
                    d.payload_bytes, d.state, d.claimed_by,
                    d.state = 2 AND d.cancel_requested_at IS NOT NULL AS called_off
                FROM (
                    SELECT DISTINCT *
                    FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS t(endpoint, id, token)
                ) r
                JOIN fencepost.deliveries d
                    ON d.endpoint = r.endpoint AND d.id = r.id AND d.claim_token = r.token
                ORDER BY d.id
                FOR NO KEY UPDATE OF d
            ), sl AS MATERIALIZED (
                SELECT s.endpoint, s.circuit_probe
                FROM fencepost.endpoint_schedule s
                WHERE s.endpoint IN (SELECT endpoint FROM l)
                ORDER BY s.endpoint
                FOR NO KEY UPDATE
            ), u AS (
                UPDATE fencepost.deliveries d SET state = 1, reason = NULL, claim_token = NULL
                WHERE d.id = ANY(ARRAY(SELECT id FROM l WHERE state IN (1, 2) AND NOT called_off))
                    AND (SELECT count(*) FROM sl) >= 0
                RETURNING d.id
            ), gone AS (
                DELETE FROM fencepost.deliveries d
                WHERE d.id = ANY(ARRAY(SELECT id FROM l WHERE called_off))
                    AND (SELECT count(*) FROM sl) >= 0
                RETURNING d.id
            ), settled AS (
                INSERT INTO fencepost.settled_deliveries (endpoint, id, submission, settled_at,
                    attempts, cycle_attempts, payload_bytes, state, reason, claimed_by)
                SELECT l.endpoint, l.id, l.submission, statement_timestamp(), l.attempts,
                    l.cycle_attempts, l.payload_bytes, 5, 21, l.claimed_by
                FROM l JOIN gone ON gone.id = l.id
            ), slots AS (
                UPDATE fencepost.endpoint_schedule s
                SET in_flight = s.in_flight - y.freed, low_water = LEAST(s.low_water, y.due_at),
                    given_back = s.given_back + 1,
                    circuit_until = CASE WHEN y.is_probe
                        THEN LEAST(s.circuit_until, statement_timestamp())
                        ELSE s.circuit_until END,
                    circuit_probe = CASE WHEN NOT y.is_probe THEN s.circuit_probe END
                FROM (
                    SELECT l.endpoint, count(*) FILTER (WHERE l.state = 2)::int AS freed,
                        min(l.due_at) AS due_at,
                        coalesce(bool_or(l.claim_token = sl.circuit_probe), false) AS is_probe
                    FROM l JOIN sl ON sl.endpoint = l.endpoint
                    WHERE l.state IN (1, 2) GROUP BY l.endpoint
                ) y
                WHERE s.endpoint = y.endpoint
            )
            SELECT id AS "id!" FROM u UNION ALL SELECT id FROM gone"#,
            &endpoints,
            &deliveries,
            &tokens,
        )
        .fetch_all(pool)
        .await
    })
    .await
    .map(|ids| ids.into_iter().map(DeliveryId::from_uuid).collect())
    .map_err(|error| store_error("delivery::give_back", error))
}
