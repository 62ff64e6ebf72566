//! Partitions: a day each, by the millisecond in a UUIDv7.

mod drop_day;
mod make;

use time::macros::format_description;
use time::{Date, UtcDateTime};
use uuid::Uuid;

use crate::postgres::errors::sqlstate;

pub(in crate::postgres) use drop_day::{Dropping, Standing, drop_day, read_days};
pub(in crate::postgres) use make::{ensure, ensure_ahead, ensure_of};

/// Submissions last: what is accepted on a day can then be recorded and settled on that day too, even if
/// this was interrupted in between.
pub(in crate::postgres) const PARENTS: [&str; 3] =
    ["attempts", "settled_deliveries", "submissions"];
/// Partitions exist from so many days back …
pub(in crate::postgres) const DAYS_BACK: i64 = 2;
/// … to so many days ahead.
const DAYS_AHEAD: i64 = 14;

/// Whether a row was refused because its day has no partition. A violated check has a name.
pub(in crate::postgres) fn is_missing(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| {
        error.code().as_deref() == Some(sqlstate::CHECK_VIOLATION) && error.constraint().is_none()
    })
}

/// The day in whose partition an id lies.
fn day_of(id: Uuid) -> Option<Date> {
    let millis = i64::try_from(id.as_u128() >> 80).ok()?;
    UtcDateTime::from_unix_timestamp(millis / 1_000).ok().map(UtcDateTime::date)
}

/// The parent and the day of a partition's name.
fn parse_name(name: &str) -> Option<(&'static str, Date)> {
    let (parent, day) = name.rsplit_once('_')?;
    let parent = PARENTS.into_iter().find(|known| *known == parent)?;
    Date::parse(day, format_description!("[year][month][day]")).ok().map(|day| (parent, day))
}

pub(in crate::postgres) fn name_of(parent: &str, day: Date) -> String {
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

/// The ids of a day: from the first on, below the second.
pub(in crate::postgres) fn bounds_of(day: Date) -> (Uuid, Uuid) {
    (lower_bound(day), lower_bound(day + time::Duration::DAY))
}

#[cfg(test)]
mod tests {
    use domain::id::uuid_v7;
    use time::Duration;
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
        assert_eq!((day_of(first), day_of(last)), (Some(day), Some(day)));
    }

    #[test]
    fn names_of_partitions_lead_back_to_their_parent_and_day() {
        let day = date!(2026 - 11 - 30);
        for parent in PARENTS {
            assert_eq!(parse_name(&name_of(parent, day)), Some((parent, day)));
        }
        for other in ["deliveries_20261130", "attempts_2026113", "attempts_20261131", "attempts"] {
            assert_eq!(parse_name(other), None);
        }
    }
}
