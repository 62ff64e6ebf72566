//! Counts the slots of some endpoints, and makes schedule rows that are missing.

use domain::delivery::lease::LEASE_MARGIN;
use domain::id::EndpointKey;
use uuid::Uuid;

use crate::StoreError;
use crate::maintenance::Recount;
use crate::sqlite::codec::{json_of_uuids, millis};
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(super) async fn recount_slots(
    writer: &Writer,
    after: Option<EndpointKey>,
    limit: u32,
) -> Result<Recount, StoreError> {
    let after = after.map_or(Uuid::nil(), EndpointKey::as_uuid);
    writer
        .run("maintenance::recount_slots", move |tx| {
            Box::pin(async move {
                let made = make_missing(tx, limit).await?;
                let page = read_page(tx, after, limit).await?;
                let mended = count_and_write(tx, &page).await?;
                let is_full = u32::try_from(page.len()).is_ok_and(|count| count >= limit);
                let last = page.last().copied().map(EndpointKey::from_uuid);
                Ok(Recount { mended, made, next: last.filter(|_| is_full) })
            })
        })
        .await
}

/// An endpoint without a schedule row is never claimed.
async fn make_missing(tx: &mut WriteTransaction, limit: u32) -> Result<u64, Fault> {
    let done = sqlx::query(
        "-- sqlite::maintenance::recount_slots::make_missing
        INSERT INTO endpoint_schedule
            (endpoint, enabled, deleted, cap, lease_ms, rate_limit, rate_window_ms, circuit_breaker,
            held)
        SELECT e.key, e.disabled_cause IS NULL, e.deleted_at IS NOT NULL, e.in_flight_max,
            e.deadline_ms + ?2, e.delivery_rate, e.delivery_rate_ms, e.circuit_breaker,
            (SELECT held FROM holds)
        FROM endpoints e
        WHERE NOT EXISTS (SELECT 1 FROM endpoint_schedule s WHERE s.endpoint = e.key)
        ORDER BY e.key
        LIMIT ?1",
    )
    .bind(limit)
    .bind(millis(LEASE_MARGIN))
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected())
}

async fn read_page(tx: &mut WriteTransaction, after: Uuid, limit: u32) -> Result<Vec<Uuid>, Fault> {
    let page = sqlx::query_scalar(
        "-- sqlite::maintenance::recount_slots::read_page
        SELECT endpoint FROM endpoint_schedule WHERE endpoint > ?1 ORDER BY endpoint LIMIT ?2",
    )
    .bind(after)
    .bind(limit)
    .fetch_all(tx.connection())
    .await?;
    Ok(page)
}

async fn count_and_write(tx: &mut WriteTransaction, endpoints: &[Uuid]) -> Result<u64, Fault> {
    let done = sqlx::query(
        "-- sqlite::maintenance::recount_slots::count_and_write
        UPDATE endpoint_schedule SET in_flight = x.n
        FROM (
            SELECT unhex(r.value, '-') AS endpoint, (
                SELECT count(*) FROM deliveries d
                WHERE d.endpoint = unhex(r.value, '-') AND d.state = 2
            ) AS n
            FROM json_each(?1) r
        ) x
        WHERE endpoint_schedule.endpoint = x.endpoint AND endpoint_schedule.in_flight <> x.n",
    )
    .bind(json_of_uuids(endpoints.iter().copied()))
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected())
}
