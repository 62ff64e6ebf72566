//! Drops the history of a day of which nothing is owed any more.
//!
//! 1. Under a lock on the day's tables, which waits for every open transaction that has written
//!    there: is a delivery of that day owed or replayable? If not, the tables are marked. Whoever
//!    detached a day by hand, to keep it, finds it where it was: only marked tables are dropped.
//! 2. Each is detached from its parent concurrently, so that nobody waits for anything. That cannot
//!    be part of a transaction, so a crash may leave some detached, or half detached: the next call
//!    goes on from there.
//! 3. Detaching has waited for all who still used the parent. So a second look sees what was accepted
//!    between 1 and 2: then the day is attached again. If there is nothing, the tables are dropped.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use time::{Date, Duration};

use crate::postgres::pool::Pool;

use super::{lower_bound, name_of, parse_name};
use crate::StoreError;
use crate::maintenance::WhyKept;
use crate::postgres::errors::{sqlstate, sqlstate_of, store_error};

const OPERATION: &str = "schema::partitions::drop_day";
const MARK: &str = "Over, and being dropped by the maintenance of Fencepost.";

/// The tables of a day, by their parent.
pub(in crate::postgres) type Tables = BTreeMap<&'static str, Standing>;

/// How a day's table stands to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::postgres) enum Standing {
    Attached,
    /// Somebody began to detach it and did not end.
    Detaching,
    /// Detached, and marked as one that is being dropped.
    Left,
}

/// What became of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::postgres) enum Dropping {
    Dropped,
    Kept(WhyKept),
    /// Somebody else has dropped it meanwhile.
    Gone,
}

/// The days that have tables, with the instant of the database's clock.
pub(in crate::postgres) async fn read_days(
    pool: &Pool,
) -> Result<(time::OffsetDateTime, BTreeMap<Date, Tables>), StoreError> {
    let rows = sqlx::query!(
        r#"-- postgres::schema::partitions::drop_day::read_days
        SELECT c.relname::text AS "name!", i.inhdetachpending AS "detaching?",
            statement_timestamp() AS "now!"
        FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'fencepost'
        LEFT JOIN pg_catalog.pg_inherits i ON i.inhrelid = c.oid
        WHERE c.relkind = 'r'
            AND (i.inhrelid IS NOT NULL OR pg_catalog.obj_description(c.oid, 'pg_class') = $1)"#,
        MARK,
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error(OPERATION, error))?;
    let mut now = time::OffsetDateTime::UNIX_EPOCH;
    let mut days: BTreeMap<Date, Tables> = BTreeMap::new();
    for row in rows {
        now = row.now;
        let Some((parent, day)) = parse_name(&row.name) else { continue };
        let standing = match row.detaching {
            Some(true) => Standing::Detaching,
            Some(false) => Standing::Attached,
            None => Standing::Left,
        };
        days.entry(day).or_default().insert(parent, standing);
    }
    Ok((now, days))
}

/// Must run on a task that is not dropped.
pub(in crate::postgres) async fn drop_day(
    connection: &mut PgConnection,
    day: Date,
    tables: &Tables,
) -> Result<Dropping, StoreError> {
    match try_drop(connection, day, tables).await {
        Ok(dropping) => Ok(dropping),
        Err(error) => match sqlstate_of(&error).as_deref() {
            Some(
                sqlstate::LOCK_NOT_AVAILABLE
                | sqlstate::QUERY_CANCELED
                | sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE
                | sqlstate::DEADLOCK_DETECTED,
            ) => Ok(Dropping::Kept(WhyKept::InUse)),
            // Another leader was quicker.
            Some(sqlstate::UNDEFINED_TABLE) => Ok(Dropping::Gone),
            _ => Err(store_error(OPERATION, error)),
        },
    }
}

async fn try_drop(
    connection: &mut PgConnection,
    day: Date,
    tables: &Tables,
) -> Result<Dropping, sqlx::Error> {
    let attached = |standing: &Standing| *standing == Standing::Attached;
    if tables.values().any(attached) && !mark(connection, day, tables).await? {
        return Ok(Dropping::Kept(WhyKept::Owed));
    }
    for (parent, standing) in tables {
        let name = name_of(parent, day);
        let how = match standing {
            Standing::Attached => "CONCURRENTLY",
            Standing::Detaching => "FINALIZE",
            Standing::Left => continue,
        };
        let text =
            format!("ALTER TABLE fencepost.{parent} DETACH PARTITION fencepost.{name} {how}");
        connection.execute(AssertSqlSafe(text)).await?;
    }
    drop_detached(connection, day, tables).await
}

/// Marks the tables if nothing of the day is owed, and answers whether it did.
async fn mark(
    connection: &mut PgConnection,
    day: Date,
    tables: &Tables,
) -> Result<bool, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    lock(&mut transaction, day, tables, "SHARE").await?;
    let is_free = !is_owed(&mut transaction, day).await?;
    if is_free {
        for parent in tables.keys() {
            let text = format!("COMMENT ON TABLE fencepost.{} IS '{MARK}'", name_of(parent, day));
            transaction.execute(AssertSqlSafe(text)).await?;
        }
    }
    transaction.commit().await?;
    Ok(is_free)
}

async fn drop_detached(
    connection: &mut PgConnection,
    day: Date,
    tables: &Tables,
) -> Result<Dropping, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    lock(&mut transaction, day, tables, "ACCESS EXCLUSIVE").await?;
    let owed = is_owed(&mut transaction, day).await?;
    let (from, to) = (lower_bound(day), lower_bound(day + Duration::DAY));
    for parent in tables.keys() {
        let name = name_of(parent, day);
        let text = if owed {
            format!(
                "ALTER TABLE fencepost.{parent} ATTACH PARTITION fencepost.{name} \
                 FOR VALUES FROM ('{from}') TO ('{to}'); COMMENT ON TABLE fencepost.{name} IS NULL"
            )
        } else {
            format!("DROP TABLE fencepost.{name}")
        };
        transaction.execute(AssertSqlSafe(text)).await?;
    }
    transaction.commit().await?;
    Ok(if owed { Dropping::Kept(WhyKept::Owed) } else { Dropping::Dropped })
}

/// Waits a second at most: who comes behind us waits with us.
async fn lock(
    connection: &mut PgConnection,
    day: Date,
    tables: &Tables,
    mode: &str,
) -> Result<(), sqlx::Error> {
    connection.execute("SET LOCAL lock_timeout = '1s'").await?;
    for parent in tables.keys() {
        let text = format!("LOCK TABLE fencepost.{} IN {mode} MODE", name_of(parent, day));
        connection.execute(AssertSqlSafe(text)).await?;
    }
    Ok(())
}

/// A statement of its own behind the locks: it sees all that was committed before they were had.
async fn is_owed(connection: &mut PgConnection, day: Date) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"-- postgres::schema::partitions::drop_day::is_owed
        SELECT EXISTS (
            SELECT FROM fencepost.deliveries d WHERE d.id >= $1 AND d.id < $2
        ) AS "owed!""#,
        lower_bound(day),
        lower_bound(day + Duration::DAY),
    )
    .fetch_one(connection)
    .await
}
