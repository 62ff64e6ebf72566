//! Reserves units of rate limits: one upsert increments and reads.
//!
//! The window is that of the transaction's instant, which was read under the write lock.

use std::time::Duration;

use crate::rate_limit::{Reservation, Reserved};
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};
use crate::{StoreError, codes};

pub(in crate::sqlite) async fn reserve(
    writer: &Writer,
    reservations: &[Reservation],
) -> Result<Vec<Reserved>, StoreError> {
    let reservations = reservations.to_vec();
    writer
        .run("rate_limit::reserve", move |tx| {
            Box::pin(async move {
                let mut answers = Vec::with_capacity(reservations.len());
                for reservation in &reservations {
                    answers.push(reserve_one(tx, reservation).await?);
                }
                Ok(answers)
            })
        })
        .await
}

pub(in crate::sqlite) async fn reserve_one(
    tx: &mut WriteTransaction,
    reservation: &Reservation,
) -> Result<Reserved, Fault> {
    let (now, limit) = (tx.now(), reservation.limit);
    let micros = u64::try_from(now.unix_timestamp_nanos() / 1_000).unwrap_or(0);
    let elapsed = limit.elapsed(Duration::from_micros(micros));
    let window_ends_in = limit.window().saturating_sub(elapsed);
    let used: i64 = sqlx::query_scalar(
        "-- sqlite::rate_limit::reserve
        INSERT INTO rate_limit_counters AS c (limiter, subject, window_start, used, expires_at)
        VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (limiter, subject, window_start) DO UPDATE
        SET used = min(c.used + excluded.used, 2147483647),
            expires_at = max(c.expires_at, excluded.expires_at)
        RETURNING used",
    )
    .bind(codes::of_limiter(reservation.limiter))
    .bind(&reservation.subject)
    .bind(UnixMicros(now - elapsed))
    .bind(reservation.units)
    .bind(UnixMicros(now + window_ends_in))
    .fetch_one(tx.connection())
    .await?;
    let used = u32::try_from(used).unwrap_or(u32::MAX);
    let granted = limit.granted(used, reservation.units);
    Ok(Reserved { granted, used, limit, window_ends_in })
}
