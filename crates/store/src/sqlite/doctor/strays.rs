//! Rows that belong to nothing, in one snapshot.
//!
//! Configuration is looked through to its end. Of deliveries and attempts, of which there are any number,
//! some of the newest are.

use domain::health::Stray;
use sqlx::SqlitePool;
use uuid::Uuid;

use crate::StoreError;
use crate::doctor::{ROWS_LOOKED_AT, stray_kind, yesterday};
use crate::sqlite::errors::store_error;

pub(super) async fn strays(readers: &SqlitePool) -> Result<Vec<Stray>, StoreError> {
    let rows: Vec<(i32, i64, Uuid)> = sqlx::query_as(
        "-- sqlite::doctor::strays
        WITH newest AS MATERIALIZED (
            SELECT endpoint, id, submission FROM deliveries ORDER BY id DESC LIMIT ?1
        ), tried AS MATERIALIZED (
            SELECT endpoint, delivery FROM attempts WHERE delivery >= ?2 LIMIT ?1
        ), found (kind, example) AS (
            SELECT 1, e.key
            FROM endpoints e
            WHERE NOT EXISTS (SELECT 1 FROM endpoint_schedule s WHERE s.endpoint = e.key)
            UNION ALL
            SELECT 2, s.endpoint
            FROM endpoint_schedule s
            WHERE NOT EXISTS (SELECT 1 FROM endpoints e WHERE e.key = s.endpoint)
            UNION ALL
            SELECT 3, k.id
            FROM endpoint_secrets k
            WHERE NOT EXISTS (SELECT 1 FROM endpoints e WHERE e.key = k.endpoint)
            UNION ALL
            SELECT 4, n.id
            FROM newest n
            WHERE NOT EXISTS (
                SELECT 1 FROM submissions s WHERE s.endpoint = n.endpoint AND s.id = n.submission)
            UNION ALL
            SELECT 5, n.id
            FROM newest n
            WHERE NOT EXISTS (SELECT 1 FROM endpoints e WHERE e.key = n.endpoint)
            UNION ALL
            SELECT 6, t.delivery
            FROM tried t
            WHERE NOT EXISTS (
                SELECT 1 FROM deliveries d WHERE d.endpoint = t.endpoint AND d.id = t.delivery
            ) AND NOT EXISTS (
                SELECT 1 FROM settled_deliveries d
                WHERE d.endpoint = t.endpoint AND d.id = t.delivery)
        )
        SELECT kind, count(*), min(example) FROM found GROUP BY kind ORDER BY kind",
    )
    .bind(ROWS_LOOKED_AT)
    .bind(yesterday())
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("doctor::strays", error))?;
    let stray = |(kind, count, example): (i32, i64, Uuid)| {
        let (count, example) = (count.unsigned_abs(), example.to_string());
        stray_kind(kind).map(|kind| Stray { kind, count, example })
    };
    Ok(rows.into_iter().filter_map(stray).collect())
}
