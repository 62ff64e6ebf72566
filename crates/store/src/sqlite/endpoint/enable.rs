//! Enables an endpoint: it has neither a pause nor a cause for being disabled any more, and what its
//! results had come to is forgotten. Requests that are under way do not count any more.

use domain::id::{ApplicationKey, EndpointKey, PublicId};
use uuid::Uuid;

use super::find::find_row;
use crate::StoreError;
use crate::endpoint::Endpoint;
use crate::sealing::Sealer;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::Fault;
use crate::sqlite::life::forget_life;
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(in crate::sqlite) async fn enable(
    writer: &Writer,
    sealer: &Sealer,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<Endpoint>, StoreError> {
    let (sealer, id) = (sealer.clone(), id.clone());
    writer
        .run("endpoint::enable", move |tx| {
            Box::pin(async move {
                let Some(key) = raise_version(tx, application, &id).await? else {
                    return Ok(None);
                };
                open_schedule(tx, key).await?;
                forget_life(tx, EndpointKey::from_uuid(key)).await?;
                let row = find_row(tx.connection(), application, &id).await?;
                Ok(row.map(|row| row.endpoint(&sealer)).transpose()?)
            })
        })
        .await
}

async fn raise_version(
    tx: &mut WriteTransaction,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<Uuid>, Fault> {
    let keys: Vec<Uuid> = sqlx::query_scalar(
        "-- sqlite::endpoint::enable::raise_version
        UPDATE endpoints
        SET disabled_cause = NULL, disabled_at = NULL, version = version + 1, updated_at = ?3
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

async fn open_schedule(tx: &mut WriteTransaction, endpoint: Uuid) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::endpoint::enable::open_schedule
        UPDATE endpoint_schedule SET enabled = 1, paused_until = NULL WHERE endpoint = ?1",
    )
    .bind(endpoint)
    .execute(tx.connection())
    .await?;
    Ok(())
}
