//! Disables an endpoint if its configuration is still of the version that a worker read.
//!
//! A 410 from the old URL must not disable an endpoint that has meanwhile got a new one.

use domain::endpoint::DisabledCause;
use domain::id::EndpointKey;
use domain::operational::What;

use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::Fault;
use crate::sqlite::operational::tell;
use crate::sqlite::writer::{WriteTransaction, Writer};
use crate::{StoreError, codes};

pub(in crate::sqlite) async fn disable(
    writer: &Writer,
    endpoint: EndpointKey,
    version: i64,
    cause: DisabledCause,
) -> Result<bool, StoreError> {
    writer
        .run("endpoint::disable", move |tx| Box::pin(disable_in_tx(tx, endpoint, version, cause)))
        .await
}

/// Answers whether it was of this version, and enabled.
pub(in crate::sqlite) async fn disable_in_tx(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    version: i64,
    cause: DisabledCause,
) -> Result<bool, Fault> {
    let disabled = disable_version(tx, endpoint, version, cause).await?;
    if disabled {
        close_schedule(tx, endpoint).await?;
        tell(tx, endpoint, What::EndpointDisabled(cause)).await?;
    }
    Ok(disabled)
}

async fn disable_version(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    version: i64,
    cause: DisabledCause,
) -> Result<bool, Fault> {
    let done = sqlx::query(
        "-- sqlite::endpoint::disable::disable_version
        UPDATE endpoints
        SET disabled_cause = ?3, disabled_at = ?4, version = version + 1, updated_at = ?4
        WHERE key = ?1 AND version = ?2 AND disabled_cause IS NULL AND deleted_at IS NULL",
    )
    .bind(endpoint.as_uuid())
    .bind(version)
    .bind(codes::of_disabled_cause(cause))
    .bind(UnixMicros(tx.now()))
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() > 0)
}

async fn close_schedule(tx: &mut WriteTransaction, endpoint: EndpointKey) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::endpoint::disable::close_schedule
        UPDATE endpoint_schedule SET enabled = 0 WHERE endpoint = ?1",
    )
    .bind(endpoint.as_uuid())
    .execute(tx.connection())
    .await?;
    Ok(())
}
