//! Raises the signal of this process when another one tells that something is due.
//!
//! The connection is the listener's own. Behind a transaction pooler LISTEN is taken and nothing ever
//! comes: so the listener tells itself something first, and again after a quiet minute, and gives up
//! when it does not hear it.

use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgListener;
use tokio::time::{Instant, timeout, timeout_at};
use uuid::Uuid;

use super::{CHANNEL, notify_due::notify_due};
use crate::StoreError;
use crate::new_id::uuid_now;
use crate::postgres::errors::store_error;
use crate::wake_up::{DueSignal, Listening};

const OPERATION: &str = "wake_up::listen";
/// How long a notification may take to come back.
const HEARD_WITHIN: Duration = Duration::from_secs(3);
/// After this long without one the connection is tested.
const QUIET: Duration = Duration::from_mins(1);

/// `listening` is a pool of one connection for this, `telling` is where the test goes out.
pub(in crate::postgres) async fn listen(
    listening: &PgPool,
    telling: &PgPool,
    signal: &DueSignal,
) -> Result<Listening, StoreError> {
    let failed = |error| store_error(OPERATION, error);
    let mut listener = PgListener::connect_with(listening).await.map_err(failed)?;
    listener.ignore_pool_close_event(true);
    // Reconnecting is the caller's matter, who waits longer each time.
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await.map_err(failed)?;
    if let Some(ended) = test(&mut listener, telling, signal).await? {
        return Ok(ended);
    }
    loop {
        // Whatever was told while nobody listened is looked for now.
        signal.raise();
        if let Some(ended) = hear_until_quiet(&mut listener, signal).await? {
            return Ok(ended);
        }
        if test(&mut listener, telling, signal).await?.is_some() {
            return Ok(Listening::Lost);
        }
    }
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
    if payload != signal.origin() {
        signal.raise();
    }
}

/// Tells itself something. `None` if it hears it.
async fn test(
    listener: &mut PgListener,
    telling: &PgPool,
    signal: &DueSignal,
) -> Result<Option<Listening>, StoreError> {
    let question: Uuid = uuid_now();
    let question = format!("test {question}");
    notify_due(telling, &question).await?;
    let deadline = Instant::now() + HEARD_WITHIN;
    loop {
        match timeout_at(deadline, listener.try_recv()).await {
            Ok(Ok(Some(told))) if told.payload() == question => return Ok(None),
            Ok(Ok(Some(told))) if told.payload().starts_with("test ") => {}
            Ok(Ok(Some(told))) => raise(signal, told.payload()),
            Ok(Ok(None)) => return Ok(Some(Listening::Lost)),
            Ok(Err(error)) => return Err(store_error(OPERATION, error)),
            Err(_) => return Ok(Some(Listening::Silent)),
        }
    }
}
