//! Partitions: a day each, by the millisecond in a UUIDv7.

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use time::macros::format_description;
use time::{Date, Duration, UtcDateTime};
use uuid::Uuid;

use crate::StoreError;
use crate::postgres::errors::store_error;

const PARENTS: [&str; 3] = ["submissions", "settled_deliveries", "attempts"];
const DAYS_BACK: i64 = 2;
const DAYS_AHEAD: i64 = 14;

/// Makes the partitions from 2 days back to 14 days ahead that do not exist yet.
///
/// Each is created alone and then attached, which takes a lock on its parent that readers and
/// writers do not wait for.
pub(in crate::postgres) async fn ensure(connection: &mut PgConnection) -> Result<(), StoreError> {
    let today = sqlx::query_scalar!(
        r#"-- postgres::schema::partitions::today
        SELECT statement_timestamp() AS "now!""#,
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(|error| store_error("schema::partitions", error))?
    .to_offset(time::UtcOffset::UTC)
    .date();
    for offset in -DAYS_BACK..=DAYS_AHEAD {
        for parent in PARENTS {
            ensure_day(connection, parent, today + Duration::days(offset))
                .await
                .map_err(|error| store_error("schema::partitions", error))?;
        }
    }
    Ok(())
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
             FOR VALUES FROM ('{from}') TO ('{to}');"
        );
        transaction.execute(AssertSqlSafe(text)).await?;
    }
    transaction.commit().await
}

fn name_of(parent: &str, day: Date) -> String {
    let format = format_description!("[year][month][day]");
    let day = day.format(format).unwrap_or_else(|_| day.to_julian_day().to_string());
    format!("{parent}_{day}")
}

/// The lowest UUID of a day: its milliseconds, and zeros where a UUIDv7 has its version and randomness.
fn lower_bound(day: Date) -> Uuid {
    let seconds = UtcDateTime::new(day, time::Time::MIDNIGHT).unix_timestamp();
    let millis = u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000);
    Uuid::from_u128(u128::from(millis) << 80)
}

#[cfg(test)]
mod tests {
    use domain::id::uuid_v7;
    use time::macros::date;

    use super::*;

    #[test]
    fn a_day_holds_its_first_and_last_millisecond_and_no_other() {
        let day = date!(2026 - 11 - 30);
        let (from, to) = (lower_bound(day), lower_bound(day + Duration::DAY));
        let midnight =
            u64::try_from(UtcDateTime::new(day, time::Time::MIDNIGHT).unix_timestamp() * 1_000)
                .unwrap();
        let first = uuid_v7(midnight, [0; 10]);
        let last = uuid_v7(midnight + 86_399_999, [0xff; 10]);
        assert!(from <= first && last < to);
        assert!(uuid_v7(midnight - 1, [0xff; 10]) < from);
        assert!(to <= uuid_v7(midnight + 86_400_000, [0; 10]));
        assert_eq!(name_of("attempts", day), "attempts_20261130");
    }
}
