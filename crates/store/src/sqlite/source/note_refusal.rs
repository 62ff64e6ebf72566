//! Counts a refused request of a source, and keeps the newest reasons.

use domain::id::SourceKey;
use domain::source::Refusal;

use crate::StoreError;
use crate::source::{NotedRefusal, REFUSALS_KEPT, refusals};
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(in crate::sqlite) async fn note_refusal(
    writer: &Writer,
    source: SourceKey,
    refusal: &Refusal,
) -> Result<(), StoreError> {
    let (code, message) = (refusal.code().to_owned(), refusal.to_string());
    writer
        .run("source::note_refusal", move |tx| {
            Box::pin(async move {
                let Some(kept) = read_newest(tx, source).await? else { return Ok(()) };
                let micros = tx.now().unix_timestamp_nanos() / 1_000;
                let at_micros = i64::try_from(micros).unwrap_or(i64::MAX);
                let mut newest = vec![NotedRefusal { at_micros, code, message }];
                newest.extend(refusals(&kept).into_iter().take(REFUSALS_KEPT - 1));
                let json = serde_json::to_string(&newest).unwrap_or_default();
                write_newest(tx, source, json).await
            })
        })
        .await
}

async fn read_newest(
    tx: &mut WriteTransaction,
    source: SourceKey,
) -> Result<Option<String>, Fault> {
    let newest = sqlx::query_scalar(
        "-- sqlite::source::note_refusal::read_newest
        SELECT newest FROM source_refusals WHERE source = ?1",
    )
    .bind(source.as_uuid())
    .fetch_optional(tx.connection())
    .await?;
    Ok(newest)
}

async fn write_newest(
    tx: &mut WriteTransaction,
    source: SourceKey,
    newest: String,
) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::source::note_refusal::write_newest
        UPDATE source_refusals SET refused = refused + 1, newest = ?2 WHERE source = ?1",
    )
    .bind(source.as_uuid())
    .bind(newest)
    .execute(tx.connection())
    .await?;
    Ok(())
}
