//! Tells listening workers that something is due: a statement of its own, after the commit, so that
//! no transaction of a caller carries it. The channel stands in `wake_up.rs`.

use crate::postgres::pool::Pool;

use super::CHANNEL;
use crate::StoreError;
use crate::postgres::errors::store_error;

/// `payload` says who tells it.
pub(in crate::postgres) async fn notify_due(pool: &Pool, payload: &str) -> Result<(), StoreError> {
    notify(pool, CHANNEL, payload).await
}

pub(super) async fn notify(pool: &Pool, channel: &str, payload: &str) -> Result<(), StoreError> {
    sqlx::query!(
        "-- postgres::wake_up::notify_due
        SELECT pg_notify($1, $2)",
        channel,
        payload,
    )
    .execute(pool)
    .await
    .map(drop)
    .map_err(|error| store_error("wake_up::notify_due", error))
}
