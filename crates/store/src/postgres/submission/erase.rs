//! Erases the payload of a submission, and calls off what is owed for it.
//!
//! One statement: nobody sees a payload that is gone and a delivery that is still owed. A delivery
//! that a worker has is only marked, since its request may be out. The headers that came with an event
//! go too. Idempotency key and receipt stay: what they keep of the payload is a digest.

use domain::id::{ApplicationKey, SubmissionId};

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;

pub(in crate::postgres) async fn erase(
    pool: &Pool,
    application: ApplicationKey,
    submission: SubmissionId,
) -> Result<bool, StoreError> {
    after_conflict(|| async {
        sqlx::query_scalar!(
            r#"-- postgres::submission::erase
            WITH s AS MATERIALIZED (
                SELECT s.endpoint, s.id, s.deliveries
                FROM fencepost.submissions s
                WHERE s.id = $2 AND EXISTS (
                    SELECT FROM fencepost.endpoints e
                    WHERE e.key = s.endpoint AND e.application = $1
                )
                FOR NO KEY UPDATE OF s
            ), l AS MATERIALIZED (
                SELECT d.endpoint, d.id, d.submission, d.attempts, d.cycle_attempts,
                    d.payload_bytes, d.state, d.claimed_by
                FROM fencepost.deliveries d
                WHERE d.id = ANY(ARRAY(SELECT unnest(deliveries) FROM s))
                ORDER BY d.id
                FOR UPDATE OF d
            ), gone AS (
                DELETE FROM fencepost.deliveries d
                WHERE d.id = ANY(ARRAY(SELECT id FROM l WHERE state IN (1, 3)))
                RETURNING d.id
            ), settled AS (
                INSERT INTO fencepost.settled_deliveries (endpoint, id, submission, settled_at,
                    attempts, cycle_attempts, payload_bytes, state, reason, claimed_by)
                SELECT l.endpoint, l.id, l.submission, statement_timestamp(), l.attempts,
                    l.cycle_attempts, l.payload_bytes, 5, 23, l.claimed_by
                FROM l JOIN gone ON gone.id = l.id
            ), marked AS (
                UPDATE fencepost.deliveries d
                SET cancel_requested_at = COALESCE(d.cancel_requested_at, statement_timestamp())
                WHERE d.id = ANY(ARRAY(SELECT id FROM l WHERE state = 2))
            ), erased AS (
                UPDATE fencepost.submissions s
                SET payload = NULL, erased_at = statement_timestamp()
                FROM s AS found
                WHERE s.endpoint = found.endpoint AND s.id = found.id AND s.id = $2
                    AND s.payload IS NOT NULL
            ), forgotten AS (
                UPDATE fencepost.receipts r SET headers = NULL
                WHERE r.submission = ANY(ARRAY(SELECT id FROM s)) AND r.headers IS NOT NULL
            )
            SELECT EXISTS (SELECT FROM s) AS "found!""#,
            application.as_uuid(),
            submission.as_uuid(),
        )
        .fetch_one(pool)
        .await
    })
    .await
    .map_err(|error| store_error("submission::erase", error))
}
