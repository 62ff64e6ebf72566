//! What a rotation is decided on: how many secrets are live, and the version of the configuration.

use domain::id::SourceKey;

use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::WriteTransaction;

pub(super) async fn read_current(
    tx: &mut WriteTransaction,
    source: SourceKey,
) -> Result<Option<(i64, u32)>, Fault> {
    let row = sqlx::query_as(
        "-- sqlite::source::rotate_secret::read_current
        SELECT s.version, (
            SELECT count(*) FROM source_secrets x
            WHERE x.source = s.key AND (x.retires_at IS NULL OR x.retires_at > ?2)
        )
        FROM sources s
        WHERE s.key = ?1 AND s.deleted_at IS NULL",
    )
    .bind(source.as_uuid())
    .bind(UnixMicros(tx.now()))
    .fetch_optional(tx.connection())
    .await?;
    Ok(row)
}
