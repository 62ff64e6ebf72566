//! Makes partitions before they are needed, or when a submission meets a missing one.
//!
//! Each is created alone and then attached, which takes a lock on its parent that readers and writers
//! do not wait for.

use std::collections::BTreeSet;

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use time::{Date, Duration};
use uuid::Uuid;

use crate::postgres::pool::Pool;

use super::{DAYS_AHEAD, DAYS_BACK, PARENTS, day_of, lower_bound, name_of};
use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::undropped::undropped;

const OPERATION: &str = "schema::partitions";

/// Makes the partitions from 2 days back to 14 days ahead that do not exist yet.
pub(in crate::postgres) async fn ensure(connection: &mut PgConnection) -> Result<(), StoreError> {
    ensure_days(connection, None).await.map_err(|error| store_error(OPERATION, error))
}

/// The same, on a connection of the pool.
pub(in crate::postgres) async fn ensure_ahead(pool: &Pool) -> Result<(), StoreError> {
    ensure_in_pool(pool, None).await
}

/// Makes the partitions in which these ids lie, as far as they are of the days from 2 back to 14
/// ahead. Answers whether it was done: if not, the log says why.
pub(in crate::postgres) async fn ensure_of(pool: &Pool, ids: &[Uuid]) -> bool {
    let days: BTreeSet<Date> = ids.iter().copied().filter_map(day_of).collect();
    tracing::warn!(?days, "a partition is missing and is made now; does no worker do upkeep?");
    match ensure_in_pool(pool, Some(days)).await {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(error = error.chain(), "a missing partition cannot be made");
            false
        }
    }
}

async fn ensure_in_pool(pool: &Pool, only: Option<BTreeSet<Date>>) -> Result<(), StoreError> {
    let pool = pool.clone();
    undropped(OPERATION, async move {
        let made = async {
            let mut borrowed = pool.acquire().await?;
            ensure_days(borrowed.connection()?, only).await
        };
        made.await.map_err(|error| store_error(OPERATION, error))
    })
    .await
}

async fn ensure_days(
    connection: &mut PgConnection,
    only: Option<BTreeSet<Date>>,
) -> Result<(), sqlx::Error> {
    let today = sqlx::query_scalar!(
        r#"-- postgres::schema::partitions::make::today
        SELECT statement_timestamp() AS "now!""#,
    )
    .fetch_one(&mut *connection)
    .await?
    .to_offset(time::UtcOffset::UTC)
    .date();
    let made = read_names(connection).await?;
    for offset in -DAYS_BACK..=DAYS_AHEAD {
        let day = today + Duration::days(offset);
        if only.as_ref().is_some_and(|only| !only.contains(&day)) {
            continue;
        }
        for parent in PARENTS {
            if !made.contains(&name_of(parent, day)) {
                ensure_day(connection, parent, day).await?;
            }
        }
    }
    Ok(())
}

/// The names of all partitions that are attached.
async fn read_names(connection: &mut PgConnection) -> Result<BTreeSet<String>, sqlx::Error> {
    let names = sqlx::query_scalar!(
        r#"-- postgres::schema::partitions::make::read_names
        SELECT c.relname::text AS "name!"
        FROM pg_catalog.pg_inherits i
        JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'fencepost'"#,
    )
    .fetch_all(connection)
    .await?;
    Ok(names.into_iter().collect())
}

async fn ensure_day(
    connection: &mut PgConnection,
    parent: &'static str,
    day: Date,
) -> Result<(), sqlx::Error> {
    let name = name_of(parent, day);
    let mut transaction = connection.begin().await?;
    // Others that make partitions wait here, and then find them made. 'fncp' in ASCII, 1.
    sqlx::query!(
        "-- postgres::schema::partitions::lock
        SELECT pg_advisory_xact_lock(1718510448, 1)",
    )
    .fetch_one(&mut *transaction)
    .await?;
    let exists = sqlx::query_scalar!(
        r#"-- postgres::schema::partitions::exists
        SELECT EXISTS (
            SELECT FROM pg_catalog.pg_inherits
            WHERE inhrelid = pg_catalog.to_regclass('fencepost.' || $1::text)
        ) AS "exists!""#,
        name,
    )
    .fetch_one(&mut *transaction)
    .await?;
    if !exists {
        // Both names and bounds are ours: nothing in this text comes from outside.
        let (from, to) = (lower_bound(day), lower_bound(day + Duration::DAY));
        let text = format!(
            "CREATE TABLE fencepost.{name} (LIKE fencepost.{parent} INCLUDING ALL); \
             ALTER TABLE fencepost.{parent} ATTACH PARTITION fencepost.{name} \
             FOR VALUES FROM ('{from}') TO ('{to}'); \
             ALTER TABLE fencepost.{name} ALTER COLUMN endpoint SET (n_distinct = 1000);"
        );
        transaction.execute(AssertSqlSafe(text)).await?;
    }
    transaction.commit().await
}
