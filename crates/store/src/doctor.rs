//! What a database tells of its health. All of it is read, nothing is changed.
//!
//! It is not part of [`Store`](crate::Store): no process that serves needs it.

use domain::health::Facts;
use time::OffsetDateTime;

use crate::new_id::unix_millis_now;
use crate::{Backend, StoreError, StoreOptions};

/// How many endpoints with a wrong count are named.
pub(crate) const ENDPOINTS_TOLD: i64 = 20;
/// How many of the newest rows of a table are asked for what they belong to.
pub(crate) const ROWS_LOOKED_AT: i64 = 10_000;

/// Reads all facts of a database with a schema that this build understands. `now` is this machine's
/// clock.
///
/// A fact that cannot be read says so in its place. An error means that nothing could be read: the
/// database is away, or its schema is another.
pub async fn examine(
    url: &str,
    options: StoreOptions,
    now: fn() -> OffsetDateTime,
) -> Result<Facts, StoreError> {
    match Backend::of_url(url)? {
        #[cfg(feature = "postgres")]
        Backend::Postgres => crate::postgres::PostgresStore::open(url, options)?.examine(now).await,
        #[cfg(feature = "sqlite")]
        Backend::Sqlite => crate::sqlite::SqliteStore::open(url, options).await?.examine(now).await,
        #[cfg(not(all(feature = "postgres", feature = "sqlite")))]
        other => Err(StoreError::Address {
            message: format!("this build has no {} store", other.as_str()),
        }),
    }
}

/// The lowest id of a day ago. Which day it is matters little here, so this machine's clock does.
pub(crate) fn yesterday() -> uuid::Uuid {
    let day = std::time::Duration::from_hours(24).as_millis();
    let millis = u128::from(unix_millis_now()).saturating_sub(day);
    domain::id::uuid_floor(u64::try_from(millis).unwrap_or(0))
}

/// A fact, or why it could not be read.
pub(crate) fn reading<T>(read: Result<T, StoreError>) -> domain::health::Reading<T> {
    read.map_err(|error| error.chain())
}

/// Both clocks: the database's was read between two looks at this machine's.
pub(crate) fn clock_offset(
    before: OffsetDateTime,
    database: OffsetDateTime,
    after: OffsetDateTime,
) -> domain::health::ClockOffset {
    let half: time::Duration = (after - before) / 2;
    let offset: time::Duration = database - (before + half);
    domain::health::ClockOffset {
        offset_ms: i64::try_from(offset.whole_milliseconds()).unwrap_or(i64::MAX),
        uncertainty: half.unsigned_abs(),
    }
}

/// Kinds of strays as the statements number them.
pub(crate) fn stray_kind(code: i32) -> Option<domain::health::StrayKind> {
    use domain::health::StrayKind;
    match code {
        1 => Some(StrayKind::EndpointWithoutSchedule),
        2 => Some(StrayKind::ScheduleWithoutEndpoint),
        3 => Some(StrayKind::SecretWithoutEndpoint),
        4 => Some(StrayKind::DeliveryWithoutSubmission),
        5 => Some(StrayKind::DeliveryWithoutEndpoint),
        6 => Some(StrayKind::AttemptWithoutDelivery),
        _ => None,
    }
}
