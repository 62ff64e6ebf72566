//! Changes the one row, and then copies it to the schedule rows, in batches and in their order.
//!
//! The copying locks the row of `holds` against a change, so of two operators who change it at once the
//! last one stays, on every row. An operator who is interrupted has changed the row and not all copies:
//! the same command again goes on from there.

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;

const OPERATION: &str = "hold::set_hold";
/// Claims of these endpoints wait for one statement.
const BATCH: i64 = 500;

pub(super) async fn set_hold(
    pool: &Pool,
    held: bool,
    reason: Option<&str>,
) -> Result<(), StoreError> {
    let failed = |error| store_error(OPERATION, error);
    after_conflict(|| change(pool, held, reason)).await.map_err(failed)?;
    while after_conflict(|| copy(pool)).await.map_err(failed)? > 0 {}
    Ok(())
}

async fn change(pool: &Pool, held: bool, reason: Option<&str>) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "-- postgres::hold::set_hold::change
        UPDATE fencepost.holds SET held = $1, reason = coalesce($2, CASE WHEN held = $1 THEN reason END),
            since = CASE WHEN held = $1 THEN since ELSE statement_timestamp() END",
        held,
        reason,
    )
    .execute(pool)
    .await
    .map(drop)
}

/// Answers how many rows it changed.
async fn copy(pool: &Pool) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"-- postgres::hold::set_hold::copy
        WITH h AS MATERIALIZED (
            SELECT held FROM fencepost.holds FOR SHARE
        ), s AS MATERIALIZED (
            SELECT s.endpoint
            FROM fencepost.endpoint_schedule s
            WHERE s.held <> (SELECT held FROM h)
            ORDER BY s.endpoint
            LIMIT $1
            FOR NO KEY UPDATE
        ), u AS (
            UPDATE fencepost.endpoint_schedule s SET held = (SELECT held FROM h)
            WHERE s.endpoint = ANY(ARRAY(SELECT endpoint FROM s))
            RETURNING s.endpoint
        )
        SELECT count(*) AS "count!" FROM u"#,
        BATCH,
    )
    .fetch_one(pool)
    .await
}
