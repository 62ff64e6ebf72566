//! Deletes history older than the retention time, in batches.
//!
//! A settled delivery goes with its attempts, then a submission of which no delivery is left. The
//! file does not shrink: SQLite uses the room again. Nothing is vacuumed, which would hold the write
//! lock for as long as the whole file takes.

use std::time::Duration;

use domain::id::uuid_v7;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::StoreError;
use crate::maintenance::Cleared;
use crate::sqlite::codec::json_of_uuids;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(super) async fn clear_history(
    writer: &Writer,
    retention: Duration,
    limit: u32,
) -> Result<Cleared, StoreError> {
    writer
        .run("maintenance::clear_history", move |tx| {
            Box::pin(async move {
                let before = lowest_id_of(tx.now() - retention);
                let settled = delete_settled(tx, before, limit).await?;
                let left = u64::from(limit).saturating_sub(settled);
                let submissions = delete_submissions(tx, before, left).await?;
                let removed = settled + submissions;
                let more = removed >= u64::from(limit);
                Ok(Cleared { removed, more, kept: Vec::new() })
            })
        })
        .await
}

/// Every id that was made before has a lower one.
fn lowest_id_of(instant: OffsetDateTime) -> Uuid {
    let millis = u64::try_from(instant.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
    uuid_v7(millis, [0; 10])
}

async fn delete_settled(tx: &mut WriteTransaction, before: Uuid, limit: u32) -> Result<u64, Fault> {
    let old: Vec<Uuid> = sqlx::query_scalar(
        "-- sqlite::maintenance::clear_history::find_settled
        SELECT id FROM settled_deliveries WHERE id < ?1 ORDER BY id LIMIT ?2",
    )
    .bind(before)
    .bind(limit)
    .fetch_all(tx.connection())
    .await?;
    let old = json_of_uuids(old);
    sqlx::query(
        "-- sqlite::maintenance::clear_history::delete_attempts
        DELETE FROM attempts WHERE (endpoint, delivery) IN (
            SELECT d.endpoint, d.id
            FROM json_each(?1) r
            CROSS JOIN settled_deliveries d ON d.id = unhex(r.value, '-')
        )",
    )
    .bind(&old)
    .execute(tx.connection())
    .await?;
    let done = sqlx::query(
        "-- sqlite::maintenance::clear_history::delete_settled
        DELETE FROM settled_deliveries WHERE (endpoint, id) IN (
            SELECT d.endpoint, d.id
            FROM json_each(?1) r
            CROSS JOIN settled_deliveries d ON d.id = unhex(r.value, '-')
        )",
    )
    .bind(&old)
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected())
}

/// What is still owed is not looked for among the first rows only: it would hide the rest.
async fn delete_submissions(
    tx: &mut WriteTransaction,
    before: Uuid,
    limit: u64,
) -> Result<u64, Fault> {
    let done = sqlx::query(
        "-- sqlite::maintenance::clear_history::delete_submissions
        DELETE FROM submissions WHERE rowid IN (
            SELECT s.rowid
            FROM submissions s
            WHERE s.id < ?1 AND NOT EXISTS (
                SELECT 1
                FROM json_each(s.deliveries) r
                JOIN deliveries d ON d.endpoint = s.endpoint AND d.id = unhex(r.value, '-')
            ) AND NOT EXISTS (
                SELECT 1
                FROM json_each(s.deliveries) r
                JOIN settled_deliveries d ON d.endpoint = s.endpoint AND d.id = unhex(r.value, '-')
            )
            ORDER BY s.id
            LIMIT ?2
        )",
    )
    .bind(before)
    .bind(i64::try_from(limit).unwrap_or(i64::MAX))
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected())
}
