//! Raises the signal of this process when another one tells that something is due.
//!
//! The connection is the listener's own. Behind a transaction pooler it is not: LISTEN would stay on a
//! connection that others use next, to whom a notification in the middle of their answers is a broken
//! protocol. So two things come first:
//!
//! 1. Whether two connections of ours ever meet one backend, which only a pooler lets them.
//! 2. A channel that nobody else knows, on which the listener tells itself something. Where that does not
//!    come back, nothing will. It is asked again after each quiet minute.

use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::PgListener;
use tokio::time::{Instant, timeout, timeout_at};

use crate::postgres::pool::Pool;

use super::{CHANNEL, notify_due::notify};
use crate::StoreError;
use crate::new_id::uuid_now;
use crate::postgres::errors::store_error;
use crate::wake_up::{DueSignal, Listening, told};

const OPERATION: &str = "wake_up::listen";
/// How long a notification may take to come back.
const HEARD_WITHIN: Duration = Duration::from_secs(3);
/// After this long without one the connection is tested.
const QUIET: Duration = Duration::from_mins(1);

/// `listening` is a pool of one connection for this, `telling` is where the test goes out.
pub(in crate::postgres) async fn listen(
    listening: &sqlx::PgPool,
    telling: &Pool,
    signal: &DueSignal,
) -> Result<Listening, StoreError> {
    let failed = |error| store_error(OPERATION, error);
    let mut listener = PgListener::connect_with(listening).await.map_err(failed)?;
    listener.ignore_pool_close_event(true);
    // Reconnecting is the caller's matter, who waits longer each time.
    listener.eager_reconnect(false);
    if shares_its_backend(&mut listener, telling).await.map_err(failed)? {
        return Ok(Listening::Silent);
    }
    let own_channel = format!("fencepost_test_{}", uuid_now().simple());
    listener.listen(&own_channel).await.map_err(failed)?;
    if let Some(ended) = test(&mut listener, telling, &own_channel, signal).await? {
        return Ok(ended);
    }
    listener.listen(CHANNEL).await.map_err(failed)?;
    loop {
        // Whatever was told while nobody listened is looked for now.
        signal.raise(&[]);
        if let Some(ended) = hear_until_quiet(&mut listener, signal).await? {
            return Ok(ended);
        }
        if test(&mut listener, telling, &own_channel, signal).await?.is_some() {
            return Ok(Listening::Lost);
        }
    }
}

/// Whether what is told on one connection comes back on another.
pub(in crate::postgres) async fn hears_itself(
    listening: &sqlx::PgPool,
    telling: &Pool,
) -> Result<bool, StoreError> {
    let failed = |error| store_error(OPERATION, error);
    let mut listener = PgListener::connect_with(listening).await.map_err(failed)?;
    listener.ignore_pool_close_event(true);
    listener.eager_reconnect(false);
    if shares_its_backend(&mut listener, telling).await.map_err(failed)? {
        return Ok(false);
    }
    let own_channel = format!("fencepost_test_{}", uuid_now().simple());
    listener.listen(&own_channel).await.map_err(failed)?;
    let ended = test(&mut listener, telling, &own_channel, &DueSignal::default()).await?;
    Ok(ended.is_none())
}

/// Whether the listener is seen on a backend that another connection uses too. `false` is no proof.
async fn shares_its_backend(
    listener: &mut PgListener,
    telling: &Pool,
) -> Result<bool, sqlx::Error> {
    let before = backend_pid(&mut *listener).await?;
    // Held, so that a pooler has to find another backend for the listener.
    let mut borrowed = telling.acquire().await?;
    let mut holding = borrowed.connection()?.begin().await?;
    let held = backend_pid(&mut *holding).await?;
    let is_shared = held == before || backend_pid(&mut *listener).await? != before;
    holding.rollback().await?;
    Ok(is_shared)
}

async fn backend_pid<'c>(
    connection: impl sqlx::PgExecutor<'c>,
) -> Result<Option<i32>, sqlx::Error> {
    sqlx::query_scalar!(
        "-- postgres::wake_up::listen::backend_pid
        SELECT pg_backend_pid()"
    )
    .fetch_one(connection)
    .await
}

async fn hear_until_quiet(
    listener: &mut PgListener,
    signal: &DueSignal,
) -> Result<Option<Listening>, StoreError> {
    loop {
        match timeout(QUIET, listener.try_recv()).await {
            Ok(Ok(Some(told))) => raise(signal, told.payload()),
            Ok(Ok(None)) => return Ok(Some(Listening::Lost)),
            Ok(Err(error)) => return Err(store_error(OPERATION, error)),
            Err(_) => return Ok(None),
        }
    }
}

/// What this process told needs no way through the database: it was raised directly.
fn raise(signal: &DueSignal, payload: &str) {
    let (origin, endpoints) = told::read(payload);
    if origin != signal.origin() {
        signal.raise(&endpoints);
    }
}

/// Tells itself something. `None` if it hears it.
async fn test(
    listener: &mut PgListener,
    telling: &Pool,
    own_channel: &str,
    signal: &DueSignal,
) -> Result<Option<Listening>, StoreError> {
    notify(telling, own_channel, "test").await?;
    let deadline = Instant::now() + HEARD_WITHIN;
    loop {
        match timeout_at(deadline, listener.try_recv()).await {
            Ok(Ok(Some(told))) if told.channel() == own_channel => return Ok(None),
            Ok(Ok(Some(told))) => raise(signal, told.payload()),
            Ok(Ok(None)) => return Ok(Some(Listening::Lost)),
            Ok(Err(error)) => return Err(store_error(OPERATION, error)),
            Err(_) => return Ok(Some(Listening::Silent)),
        }
    }
}
