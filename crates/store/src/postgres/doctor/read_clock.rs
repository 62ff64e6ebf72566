//! The database's clock beside this machine's.

use domain::health::ClockOffset;
use time::OffsetDateTime;

use crate::StoreError;
use crate::doctor::clock_offset;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn read_clock(
    pool: &Pool,
    now: fn() -> OffsetDateTime,
) -> Result<ClockOffset, StoreError> {
    let before = now();
    let database = sqlx::query_scalar!(
        r#"-- postgres::doctor::read_clock
        SELECT clock_timestamp() AS "now!""#,
    )
    .fetch_one(pool)
    .await
    .map_err(|error| store_error("doctor::read_clock", error))?;
    Ok(clock_offset(before, database, now()))
}
