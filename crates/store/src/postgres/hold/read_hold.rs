//! How the hold stands, and which claims are from before it.

use std::time::Duration;

use crate::StoreError;
use crate::hold::Hold;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn read_hold(pool: &Pool) -> Result<Hold, StoreError> {
    sqlx::query!(
        r#"-- postgres::hold::read_hold
        SELECT h.held, h.since, h.reason, b.behind AS "behind!", o.open AS "open!",
            extract(epoch FROM o.ends - statement_timestamp())::float8 AS "seconds?"
        FROM fencepost.holds h
        CROSS JOIN LATERAL (
            SELECT count(*) AS behind FROM fencepost.endpoint_schedule s WHERE s.held <> h.held
        ) b
        CROSS JOIN (
            SELECT count(*) AS open, max(q.claim_expires_at) AS ends
            FROM fencepost.endpoint_schedule s
            CROSS JOIN LATERAL (
                SELECT d.claim_expires_at
                FROM fencepost.deliveries d
                WHERE d.endpoint = s.endpoint AND d.state = 2
                    AND d.claim_expires_at > statement_timestamp()
            ) q
        ) o"#,
    )
    .map(|row| Hold {
        held: row.held,
        since: row.since,
        reason: row.reason,
        endpoints_behind: row.behind.unsigned_abs(),
        open_claims: row.open.unsigned_abs(),
        longest_lease: Duration::try_from_secs_f64(row.seconds.unwrap_or(0.0)).unwrap_or_default(),
    })
    .fetch_one(pool)
    .await
    .map_err(|error| store_error("hold::read_hold", error))
}
