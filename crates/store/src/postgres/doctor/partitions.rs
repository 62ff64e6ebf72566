//! Days for which there is no room, and days that are over and still there.

use std::time::Duration;

use domain::health::{OverdueDay, Partitions};
use time::{Date, UtcOffset};

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::maintenance::first_kept;
use crate::postgres::pool::Pool;
use crate::postgres::schema::partitions::{PARENTS, Standing, bounds_of, name_of, read_days};

/// So far ahead there has to be room: workers make twice as much.
const DAYS_AHEAD: i64 = 7;
/// Maintenance looks every hour.
const GRACE: Duration = Duration::from_hours(2);
/// Of so many overdue days it is said why.
const DAYS_TOLD: usize = 10;

pub(super) async fn partitions(pool: &Pool, retention: Duration) -> Result<Partitions, StoreError> {
    let (now, days) = read_days(pool).await?;
    let today = now.to_offset(UtcOffset::UTC).date();
    let has_room = |day: &Date| {
        days.get(day).is_some_and(|tables| {
            PARENTS.iter().all(|parent| tables.get(parent) == Some(&Standing::Attached))
        })
    };
    let missing = (0..=DAYS_AHEAD)
        .map(|ahead| today + time::Duration::days(ahead))
        .filter(|day| !has_room(day))
        .collect();
    let mut overdue = Vec::new();
    for day in days.range(..first_kept(now - GRACE, retention)).map(|(day, _)| *day).take(DAYS_TOLD)
    {
        overdue.push(read_overdue(pool, day).await?);
    }
    Ok(Partitions { missing, overdue })
}

async fn read_overdue(pool: &Pool, day: Date) -> Result<OverdueDay, StoreError> {
    let tables: Vec<String> = PARENTS.iter().map(|parent| name_of(parent, day)).collect();
    let (from, to) = bounds_of(day);
    let row = sqlx::query!(
        r#"-- postgres::doctor::partitions::read_overdue
        SELECT (
            SELECT count(*) FROM (
                SELECT FROM fencepost.deliveries d WHERE d.id >= $1 AND d.id < $2 LIMIT 10000
            ) x
        ) AS "owed!", ARRAY(
            SELECT DISTINCT l.pid
            FROM pg_catalog.pg_locks l
            JOIN pg_catalog.pg_class c ON c.oid = l.relation
            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'fencepost'
            WHERE c.relname = ANY($3::text[]) AND l.granted AND l.pid <> pg_backend_pid()
                AND l.database = (
                    SELECT b.oid FROM pg_catalog.pg_database b WHERE b.datname = current_database())
            ORDER BY l.pid
        ) AS "used_by!: Vec<i32>""#,
        from,
        to,
        &tables,
    )
    .fetch_one(pool)
    .await
    .map_err(|error| store_error("doctor::partitions", error))?;
    Ok(OverdueDay { day, owed: row.owed.unsigned_abs(), used_by: row.used_by })
}
