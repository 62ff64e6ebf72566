//! Changes the one row and its copies together.

use crate::StoreError;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::writer::Writer;

pub(super) async fn set_hold(
    writer: &Writer,
    held: bool,
    reason: Option<&str>,
) -> Result<(), StoreError> {
    let reason = reason.map(str::to_owned);
    writer
        .run("hold::set_hold", move |tx| {
            Box::pin(async move {
                sqlx::query(
                    "-- sqlite::hold::set_hold::change
                    UPDATE holds SET held = ?1,
                        reason = coalesce(?2, CASE WHEN held = ?1 THEN reason END),
                        since = CASE WHEN held = ?1 THEN since ELSE ?3 END",
                )
                .bind(held)
                .bind(reason)
                .bind(UnixMicros(tx.now()))
                .execute(tx.connection())
                .await?;
                sqlx::query(
                    "-- sqlite::hold::set_hold::copy
                    UPDATE endpoint_schedule SET held = ?1 WHERE held <> ?1",
                )
                .bind(held)
                .execute(tx.connection())
                .await?;
                Ok(())
            })
        })
        .await
}
