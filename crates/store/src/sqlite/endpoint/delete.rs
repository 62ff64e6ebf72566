//! Marks an endpoint and its schedule row as deleted, in one transaction.
//!
//! From then on nothing names it, nothing is accepted for it and nothing of it is claimed. What is
//! owed to it is cancelled later, also what commits after this. The row stays, so that its id is never
//! given again.

use domain::id::{ApplicationKey, PublicId};
use uuid::Uuid;

use crate::StoreError;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(in crate::sqlite) async fn delete(
    writer: &Writer,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<bool, StoreError> {
    let id = id.clone();
    writer
        .run("endpoint::delete", move |tx| {
            Box::pin(async move {
                let Some(key) = mark_endpoint(tx, application, &id).await? else {
                    return Ok(false);
                };
                mark_schedule(tx, key).await?;
                Ok(true)
            })
        })
        .await
}

async fn mark_endpoint(
    tx: &mut WriteTransaction,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<Uuid>, Fault> {
    let keys: Vec<Uuid> = sqlx::query_scalar(
        "-- sqlite::endpoint::delete::mark_endpoint
        UPDATE endpoints SET deleted_at = ?3, version = version + 1, updated_at = ?3
        WHERE application = ?1 AND id = ?2 AND deleted_at IS NULL
        RETURNING key",
    )
    .bind(application.as_uuid())
    .bind(id.as_str())
    .bind(UnixMicros(tx.now()))
    .fetch_all(tx.connection())
    .await?;
    Ok(keys.first().copied())
}

async fn mark_schedule(tx: &mut WriteTransaction, endpoint: Uuid) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::endpoint::delete::mark_schedule
        UPDATE endpoint_schedule SET deleted = 1 WHERE endpoint = ?1",
    )
    .bind(endpoint)
    .execute(tx.connection())
    .await?;
    Ok(())
}
