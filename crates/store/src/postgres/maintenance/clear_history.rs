//! Drops the oldest day that ended more than the retention time ago and of which nothing is owed.

use std::time::Duration;

use time::{Date, OffsetDateTime, UtcOffset};

use crate::StoreError;
use crate::maintenance::Cleared;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::schema::partitions::{DAYS_BACK, Dropping, drop_day, read_days};
use crate::postgres::undropped::undropped;

const OPERATION: &str = "maintenance::clear_history";

pub(super) async fn clear_history(pool: &Pool, retention: Duration) -> Result<Cleared, StoreError> {
    let pool = pool.clone();
    undropped(OPERATION, async move {
        let (now, days) = read_days(&pool).await?;
        let mut cleared = Cleared::default();
        for (day, tables) in days.range(..first_kept(now, retention)) {
            let unavailable = |error| store_error(OPERATION, error);
            let mut borrowed = pool.acquire().await.map_err(unavailable)?;
            let connection = borrowed.connection().map_err(unavailable)?;
            match drop_day(connection, *day, tables).await? {
                Dropping::Dropped => {
                    tracing::info!(%day, "the history of a day was dropped");
                    (cleared.removed, cleared.more) = (1, true);
                    break;
                }
                Dropping::Kept(why) => cleared.kept.push((*day, why)),
                Dropping::Gone => {}
            }
        }
        Ok(cleared)
    })
    .await
}

/// The first day that did not end more than the retention time ago, or has its partition always.
pub(in crate::postgres) fn first_kept(now: OffsetDateTime, retention: Duration) -> Date {
    let date = |instant: OffsetDateTime| instant.to_offset(UtcOffset::UTC).date();
    date(now - retention).min(date(now) - time::Duration::days(DAYS_BACK))
}

#[cfg(test)]
mod tests {
    use time::macros::{date, datetime};

    use super::*;

    #[test]
    fn a_day_stays_until_its_last_instant_is_older_than_the_retention_time() {
        let retention = Duration::from_hours(30 * 24);
        let before = datetime!(2026-11-30 23:59:59 UTC);
        assert_eq!(first_kept(before, retention), date!(2026 - 10 - 31));
        let midnight = datetime!(2026-12-01 00:00:00 UTC);
        assert_eq!(first_kept(midnight, retention), date!(2026 - 11 - 01));
    }

    #[test]
    fn the_days_that_always_have_a_partition_are_never_dropped() {
        let now = datetime!(2026-11-30 12:00:00 UTC);
        assert_eq!(first_kept(now, Duration::from_secs(1)), date!(2026 - 11 - 28));
    }
}
