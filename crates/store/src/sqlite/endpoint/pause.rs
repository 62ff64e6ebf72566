//! Pauses an endpoint: later claims find it closed until the end of the pause.

use domain::id::{ApplicationKey, PublicId};
use time::OffsetDateTime;
use uuid::Uuid;

use super::find::find_row;
use crate::StoreError;
use crate::endpoint::{Endpoint, PAUSED_FOR_GOOD, Pause};
use crate::sealing::Sealer;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(in crate::sqlite) async fn pause(
    writer: &Writer,
    sealer: &Sealer,
    application: ApplicationKey,
    id: &PublicId,
    pause: Pause,
) -> Result<Option<Endpoint>, StoreError> {
    let (sealer, id) = (sealer.clone(), id.clone());
    writer
        .run("endpoint::pause", move |tx| {
            Box::pin(async move {
                let until = match pause {
                    Pause::ForGood => PAUSED_FOR_GOOD,
                    Pause::Until(until) => until,
                    Pause::For(duration) => tx.now() + duration,
                };
                let Some(key) = raise_version(tx, application, &id).await? else {
                    return Ok(None);
                };
                close_schedule(tx, key, until).await?;
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
        "-- sqlite::endpoint::pause::raise_version
        UPDATE endpoints SET version = version + 1, updated_at = ?3
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

async fn close_schedule(
    tx: &mut WriteTransaction,
    endpoint: Uuid,
    until: OffsetDateTime,
) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::endpoint::pause::close_schedule
        UPDATE endpoint_schedule SET paused_until = ?2 WHERE endpoint = ?1",
    )
    .bind(endpoint)
    .bind(UnixMicros(until))
    .execute(tx.connection())
    .await?;
    Ok(())
}
