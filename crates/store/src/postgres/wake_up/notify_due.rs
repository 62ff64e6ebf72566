//! Tells listening workers that something is due: a statement of its own, after the commit, so that
//! no transaction of a caller carries it. The channel stands in `wake_up.rs`.
//!
//! A notification has a commit of its own, and is sent after it. That does not wait for the disk: nobody
//! listens across a crash of the server.

use domain::id::EndpointKey;

use super::CHANNEL;
use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::wake_up::{DueSignal, told};

pub(in crate::postgres) async fn notify_due(
    pool: &Pool,
    signal: &DueSignal,
    endpoints: &[EndpointKey],
) -> Result<(), StoreError> {
    signal.raise(endpoints);
    notify(pool, CHANNEL, &told::write(signal.origin(), endpoints)).await
}

pub(super) async fn notify(pool: &Pool, channel: &str, payload: &str) -> Result<(), StoreError> {
    sqlx::query!(
        "-- postgres::wake_up::notify_due
        SELECT pg_notify($1, $2), set_config('synchronous_commit', 'off', true)",
        channel,
        payload,
    )
    .fetch_one(pool)
    .await
    .map(drop)
    .map_err(|error| store_error("wake_up::notify_due", error))
}
