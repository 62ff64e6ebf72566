//! Reserves units of rate limits: one upsert increments and reads.
//!
//! The increment is made on the row as it stands when its lock was had, so none is lost, and each
//! statement learns where the counter stood right after its own: of any number of processes exactly
//! the limit is granted. The window is that of the statement's instant on the database's clock, also
//! if the statement then waited for the lock into the next one.
//!
//! The commit does not wait for the disk. The log is written in order, so by the time that a submission
//! is stored, durably, what was reserved for it is durable too: a crash of the database can only forget
//! units of requests that stored nothing.
//!
//! Rows are locked in the order of their keys. The counter stops before it would overflow, far above
//! any limit.

use std::time::Duration;

use crate::postgres::pool::Pool;

use crate::postgres::codec::{count, integer, millis};
use crate::postgres::errors::store_error;
use crate::postgres::retry::after_conflict;
use crate::rate_limit::{Reservation, Reserved, rounds};
use crate::{StoreError, codes};

pub(in crate::postgres) async fn reserve(
    pool: &Pool,
    reservations: &[Reservation],
) -> Result<Vec<Reserved>, StoreError> {
    let mut answers = vec![None; reservations.len()];
    for round in rounds(reservations) {
        let asked: Vec<&Reservation> = round.iter().filter_map(|p| reservations.get(*p)).collect();
        let reserved = reserve_round(pool, &asked).await?;
        for (place, reserved) in round.into_iter().zip(reserved) {
            if let Some(answer) = answers.get_mut(place) {
                *answer = Some(reserved);
            }
        }
    }
    Ok(answers.into_iter().flatten().collect())
}

async fn reserve_round(pool: &Pool, asked: &[&Reservation]) -> Result<Vec<Reserved>, StoreError> {
    let limiters: Vec<i16> = asked.iter().map(|r| codes::of_limiter(r.limiter)).collect();
    let subjects: Vec<String> = asked.iter().map(|r| r.subject.clone()).collect();
    let windows_ms: Vec<i64> = asked.iter().map(|r| millis(r.limit.window())).collect();
    let units: Vec<i32> = asked.iter().map(|r| integer(r.units)).collect();
    let rows = after_conflict(|| async {
        sqlx::query!(
            r#"-- postgres::rate_limit::reserve
            WITH t AS MATERIALIZED (
                SELECT set_config('synchronous_commit', 'off', true)
            ), r AS MATERIALIZED (
                SELECT a.limiter, a.subject, a.units, a.place, w.length,
                    date_bin(w.length, statement_timestamp(), 'epoch'::timestamptz) AS window_start
                FROM t CROSS JOIN unnest($1::smallint[], $2::text[], $3::bigint[], $4::integer[])
                    WITH ORDINALITY AS a(limiter, subject, window_ms, units, place)
                CROSS JOIN LATERAL (SELECT a.window_ms * interval '1 millisecond' AS length) w
            ), c AS (
                INSERT INTO fencepost.rate_limit_counters AS c
                    (limiter, subject, window_start, used, expires_at)
                SELECT limiter, subject, window_start, units, window_start + length
                FROM r
                ORDER BY limiter, subject COLLATE "C", window_start
                ON CONFLICT (limiter, subject, window_start) DO UPDATE
                SET used = LEAST(c.used::bigint + EXCLUDED.used, 2147483647)::integer,
                    expires_at = GREATEST(c.expires_at, EXCLUDED.expires_at)
                RETURNING c.limiter, c.subject, c.used
            )
            SELECT c.used,
                (extract(epoch FROM r.window_start + r.length - statement_timestamp()) * 1000000)
                    ::bigint AS "window_ends_in_micros!"
            FROM r
            JOIN c ON c.limiter = r.limiter AND c.subject = r.subject
            ORDER BY r.place"#,
            &limiters,
            &subjects,
            &windows_ms,
            &units,
        )
        .fetch_all(pool)
        .await
    })
    .await
    .map_err(|error| store_error("rate_limit::reserve", error))?;
    let answers = asked.iter().zip(rows).map(|(reservation, row)| {
        let (used, limit) = (count(row.used), reservation.limit);
        let micros = u64::try_from(row.window_ends_in_micros).unwrap_or(0);
        let granted = limit.granted(used, reservation.units);
        Reserved { granted, used, limit, window_ends_in: Duration::from_micros(micros) }
    });
    Ok(answers.collect())
}
