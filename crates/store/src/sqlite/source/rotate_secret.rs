//! Gives a source a new secret (G7).

mod read_current;

use domain::id::SourceKey;
use time::OffsetDateTime;

use super::create::insert_secret;
use crate::StoreError;
use crate::sealing::Sealer;
use crate::source::{NewSourceSecret, SOURCE_SECRETS_MAX, SourceRotation, seal_secret};
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(in crate::sqlite) async fn rotate_secret(
    writer: &Writer,
    sealer: &Sealer,
    new: &NewSourceSecret,
) -> Result<SourceRotation, StoreError> {
    let secret = seal_secret(sealer, new.source, &new.secret)?;
    let (source, overlap) = (new.source, new.overlap.duration());
    writer
        .run("source::rotate_secret", move |tx| {
            Box::pin(async move {
                let Some((version, live)) = read_current::read_current(tx, source).await? else {
                    return Ok(SourceRotation::Missing);
                };
                // Without an overlap the old ones end at once.
                if live >= SOURCE_SECRETS_MAX && !overlap.is_zero() {
                    return Ok(SourceRotation::TooManyLive);
                }
                raise_version(tx, source).await?;
                let ends_at = tx.now() + overlap;
                let retires_at = retire_live(tx, source, ends_at).await?;
                insert_secret(tx, source, secret).await?;
                Ok(SourceRotation::Rotated { version: version + 1, retires_at })
            })
        })
        .await
}

async fn raise_version(tx: &mut WriteTransaction, source: SourceKey) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::source::rotate_secret::raise_version
        UPDATE sources SET version = version + 1, updated_at = ?2 WHERE key = ?1",
    )
    .bind(source.as_uuid())
    .bind(UnixMicros(tx.now()))
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Lets live secrets end at that instant, those that end earlier left as they are. Answers when the
/// last of them ends.
async fn retire_live(
    tx: &mut WriteTransaction,
    source: SourceKey,
    ends_at: OffsetDateTime,
) -> Result<Option<OffsetDateTime>, Fault> {
    let ends: Vec<UnixMicros> = sqlx::query_scalar(
        "-- sqlite::source::rotate_secret::retire_live
        UPDATE source_secrets SET retires_at = min(ifnull(retires_at, ?2), ?2)
        WHERE source = ?1 AND (retires_at IS NULL OR retires_at > ?3)
        RETURNING retires_at",
    )
    .bind(source.as_uuid())
    .bind(UnixMicros(ends_at))
    .bind(UnixMicros(tx.now()))
    .fetch_all(tx.connection())
    .await?;
    Ok(ends.into_iter().max().map(|UnixMicros(at)| at))
}
