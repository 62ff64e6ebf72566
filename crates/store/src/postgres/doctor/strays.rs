//! Rows that belong to nothing, in one snapshot: a delivery is in one of its two tables at each instant.
//!
//! Configuration is looked through to its end. Of deliveries and attempts, of which there are any number,
//! some of the newest are.

use domain::health::Stray;

use crate::StoreError;
use crate::doctor::{ROWS_LOOKED_AT, stray_kind, yesterday};
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn strays(pool: &Pool) -> Result<Vec<Stray>, StoreError> {
    let rows = sqlx::query!(
        r#"-- postgres::doctor::strays
        WITH newest AS MATERIALIZED (
            SELECT d.endpoint, d.id, d.submission
            FROM fencepost.deliveries d
            ORDER BY d.id DESC
            LIMIT $1
        ), tried AS MATERIALIZED (
            SELECT a.endpoint, a.delivery
            FROM fencepost.attempts a
            WHERE a.delivery >= $2
            LIMIT $1
        ), found AS (
            SELECT 1 AS kind, e.key AS example
            FROM fencepost.endpoints e
            WHERE NOT EXISTS (
                SELECT FROM fencepost.endpoint_schedule s WHERE s.endpoint = e.key)
            UNION ALL
            SELECT 2, s.endpoint
            FROM fencepost.endpoint_schedule s
            WHERE NOT EXISTS (SELECT FROM fencepost.endpoints e WHERE e.key = s.endpoint)
            UNION ALL
            SELECT 3, k.id
            FROM fencepost.endpoint_secrets k
            WHERE NOT EXISTS (SELECT FROM fencepost.endpoints e WHERE e.key = k.endpoint)
            UNION ALL
            SELECT 4, n.id
            FROM newest n
            WHERE NOT EXISTS (
                SELECT FROM fencepost.submissions s
                WHERE s.endpoint = n.endpoint AND s.id = n.submission)
            UNION ALL
            SELECT 5, n.id
            FROM newest n
            WHERE NOT EXISTS (SELECT FROM fencepost.endpoints e WHERE e.key = n.endpoint)
            UNION ALL
            SELECT 6, t.delivery
            FROM tried t
            WHERE NOT EXISTS (
                SELECT FROM fencepost.deliveries d
                WHERE d.endpoint = t.endpoint AND d.id = t.delivery
            ) AND NOT EXISTS (
                SELECT FROM fencepost.settled_deliveries d
                WHERE d.endpoint = t.endpoint AND d.id = t.delivery)
        )
        SELECT f.kind AS "kind!", count(*) AS "count!", min(f.example::text) AS "example!"
        FROM found f
        GROUP BY f.kind
        ORDER BY f.kind"#,
        ROWS_LOOKED_AT,
        yesterday(),
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("doctor::strays", error))?;
    let stray = |(kind, count, example): (i32, i64, String)| {
        stray_kind(kind).map(|kind| Stray { kind, count: count.unsigned_abs(), example })
    };
    Ok(rows.into_iter().filter_map(|row| stray((row.kind, row.count, row.example))).collect())
}
