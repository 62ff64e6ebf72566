//! What about a PostgreSQL may surprise whoever relies on it.

use std::time::Duration;

use anyhow::Context as _;
use sqlx::postgres::PgListener;
use sqlx::{PgConnection, PgPool};
use tokio::time::timeout;

/// How long a notification may take to come back.
const HEARD_WITHIN: Duration = Duration::from_secs(3);
const CHANNEL: &str = "fencepost_proof";

/// Looks through a pool of two connections or more.
pub(super) async fn look(pool: &PgPool) -> anyhow::Result<Vec<String>> {
    let mut warnings = Vec::new();
    if is_pooled(pool).await.context("looking for a pooler")? {
        warnings.push(
            "a transaction pooler stands before the server: notifications do not come through it, \
             so that workers poll; `fencepost migrate` wants an address of the server itself"
                .to_owned(),
        );
    } else if !hears(pool).await.context("listening")? {
        warnings.push(format!(
            "a notification did not come back within {} s: workers poll",
            HEARD_WITHIN.as_secs()
        ));
    }
    let mut connection = pool.acquire().await?;
    warnings.extend(old_snapshots(&mut connection).await?);
    warnings.extend(durability(&mut connection).await?);
    Ok(warnings)
}

/// Whether two connections of ours are seen on one backend.
async fn is_pooled(pool: &PgPool) -> sqlx::Result<bool> {
    let (mut one, mut other) = (pool.acquire().await?, pool.acquire().await?);
    let before = backend_pid(&mut one).await?;
    // Held, so that a pooler has to find another backend for the first.
    let mut holding = sqlx::Connection::begin(&mut *other).await?;
    let held = backend_pid(&mut holding).await?;
    let after = backend_pid(&mut one).await?;
    holding.rollback().await?;
    Ok(held == before || after != before)
}

async fn backend_pid(connection: &mut PgConnection) -> sqlx::Result<i32> {
    sqlx::query_scalar(
        "-- proof::verify::surroundings::warnings::backend_pid
        SELECT pg_backend_pid()",
    )
    .fetch_one(connection)
    .await
}

/// Whether what one connection tells another hears.
async fn hears(pool: &PgPool) -> sqlx::Result<bool> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    sqlx::query(
        "-- proof::verify::surroundings::warnings::hears
        SELECT pg_notify($1, '')",
    )
    .bind(CHANNEL)
    .execute(pool)
    .await?;
    let heard = timeout(HEARD_WITHIN, listener.recv()).await;
    listener.unlisten_all().await?;
    Ok(matches!(heard, Ok(Ok(_))))
}

/// A snapshot that is held keeps every dead row since from being cleaned up.
async fn old_snapshots(connection: &mut PgConnection) -> sqlx::Result<Option<String>> {
    let seconds: Option<i64> = sqlx::query_scalar(
        "-- proof::verify::surroundings::warnings::old_snapshots
        SELECT max(extract(epoch FROM clock_timestamp() - xact_start))::bigint
        FROM pg_catalog.pg_stat_activity
        WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
            AND xact_start < clock_timestamp() - interval '1 minute'",
    )
    .fetch_one(connection)
    .await?;
    Ok(seconds.map(|seconds| {
        format!(
            "a session has held its snapshot for {seconds} s: dead rows pile up, and claims read \
             past them; see pg_stat_activity.backend_xmin"
        )
    }))
}

async fn durability(connection: &mut PgConnection) -> sqlx::Result<Option<String>> {
    let off: Vec<String> = sqlx::query_scalar(
        "-- proof::verify::surroundings::warnings::durability
        SELECT name FROM pg_catalog.pg_settings
        WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') AND setting = 'off'
        ORDER BY name",
    )
    .fetch_all(connection)
    .await?;
    Ok((!off.is_empty()).then(|| {
        format!("off: {}; what was accepted can be lost in a crash of the server", off.join(", "))
    }))
}
