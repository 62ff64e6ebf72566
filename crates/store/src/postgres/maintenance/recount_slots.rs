//! Counts the slots of some endpoints, and makes schedule rows that are missing.
//!
//! The count is a statement of its own, behind the locks: in one statement it would look through the
//! snapshot from before the wait for them, and write a count that a claim has made wrong meanwhile.
//! So it takes a transaction, which runs on a task that nobody drops: it is committed or rolled back,
//! also when its caller goes away (sqlx 0.9.0 leaves a cancelled one open, its issue 4393).

use domain::delivery::lease::LEASE_MARGIN;
use domain::id::EndpointKey;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::StoreError;
use crate::maintenance::Recount;
use crate::postgres::codec::millis_i32;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;
use crate::postgres::undropped::undropped;

const OPERATION: &str = "maintenance::recount_slots";

pub(super) async fn recount_slots(
    pool: &Pool,
    after: Option<EndpointKey>,
    limit: u32,
) -> Result<Recount, StoreError> {
    let (pool, after) = (pool.clone(), after.map(EndpointKey::as_uuid));
    undropped(OPERATION, async move {
        after_conflict(|| async {
            let mut borrowed = pool.acquire().await?;
            let mut transaction = borrowed.connection()?.begin().await?;
            let recount = recount(&mut transaction, after, limit).await?;
            transaction.commit().await?;
            Ok(recount)
        })
        .await
        .map_err(|error| store_error(OPERATION, error))
    })
    .await
}

async fn recount(
    connection: &mut PgConnection,
    after: Option<Uuid>,
    limit: u32,
) -> Result<Recount, sqlx::Error> {
    let made = make_missing(connection, limit).await?;
    let locked = lock(connection, after, limit).await?;
    let mended = count_and_write(connection, &locked).await?;
    let is_full = u32::try_from(locked.len()).is_ok_and(|count| count >= limit);
    let last = locked.last().copied().map(EndpointKey::from_uuid);
    Ok(Recount { mended, made, next: last.filter(|_| is_full) })
}

/// An endpoint without a schedule row is never claimed. The endpoint is locked, so that the row says
/// what the endpoint says.
async fn make_missing(connection: &mut PgConnection, limit: u32) -> Result<u64, sqlx::Error> {
    sqlx::query!(
        "-- postgres::maintenance::recount_slots::make_missing
        WITH e AS MATERIALIZED (
            SELECT e.key, e.disabled_cause IS NULL AS enabled, e.deleted_at IS NOT NULL AS deleted,
                e.in_flight_max, e.deadline_ms, e.delivery_rate, e.delivery_rate_ms,
                e.circuit_breaker
            FROM fencepost.endpoints e
            WHERE NOT EXISTS (
                SELECT FROM fencepost.endpoint_schedule s WHERE s.endpoint = e.key
            )
            ORDER BY e.key
            LIMIT $1
            FOR SHARE OF e
        ), h AS MATERIALIZED (
            SELECT held FROM fencepost.holds FOR SHARE
        )
        INSERT INTO fencepost.endpoint_schedule
            (endpoint, enabled, deleted, cap, lease_ms, rate_limit, rate_window_ms, circuit_breaker,
            held)
        SELECT key, enabled, deleted, in_flight_max, deadline_ms + $2, delivery_rate,
            delivery_rate_ms, circuit_breaker, (SELECT held FROM h)
        FROM e
        ON CONFLICT (endpoint) DO NOTHING",
        i64::from(limit),
        millis_i32(LEASE_MARGIN),
    )
    .execute(connection)
    .await
    .map(|done| done.rows_affected())
}

async fn lock(
    connection: &mut PgConnection,
    after: Option<Uuid>,
    limit: u32,
) -> Result<Vec<Uuid>, sqlx::Error> {
    sqlx::query_scalar!(
        "-- postgres::maintenance::recount_slots::lock
        SELECT s.endpoint
        FROM fencepost.endpoint_schedule s
        WHERE s.endpoint > $1
        ORDER BY s.endpoint
        LIMIT $2
        FOR NO KEY UPDATE",
        after.unwrap_or(Uuid::nil()),
        i64::from(limit),
    )
    .fetch_all(connection)
    .await
}

async fn count_and_write(
    connection: &mut PgConnection,
    endpoints: &[Uuid],
) -> Result<u64, sqlx::Error> {
    sqlx::query!(
        "-- postgres::maintenance::recount_slots::count_and_write
        UPDATE fencepost.endpoint_schedule s SET in_flight = x.n
        FROM (
            SELECT r.endpoint, (
                SELECT count(*)::int FROM fencepost.deliveries d
                WHERE d.endpoint = r.endpoint AND d.state = 2
            ) AS n
            FROM unnest($1::uuid[]) AS r(endpoint)
        ) x
        WHERE s.endpoint = x.endpoint AND s.in_flight <> x.n",
        endpoints,
    )
    .execute(connection)
    .await
    .map(|done| done.rows_affected())
}
