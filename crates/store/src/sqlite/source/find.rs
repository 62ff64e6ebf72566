//! The live source of an application with an id.

use domain::id::{ApplicationKey, PublicId};
use sqlx::{SqliteExecutor, SqlitePool};

use super::row::SourceRow;
use crate::StoreError;
use crate::source::Source;
use crate::sqlite::errors::store_error;

pub(in crate::sqlite) async fn find(
    readers: &SqlitePool,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<Source>, StoreError> {
    let row = find_row(readers, application, id).await;
    let row = row.map_err(|error| store_error("source::find", error))?;
    row.map(SourceRow::source).transpose()
}

/// The same, also inside a transaction.
pub(super) async fn find_row<'c>(
    executor: impl SqliteExecutor<'c>,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<SourceRow>, sqlx::Error> {
    sqlx::query_as(
        "-- sqlite::source::find::find_row
        SELECT s.key, s.application, s.id, s.name, e.id AS endpoint_id, s.scheme, s.event_id,
            s.headers, ifnull(r.refused, 0) AS refused, ifnull(r.newest, '[]') AS refusals,
            s.version, s.created_at, s.updated_at
        FROM sources s
        JOIN endpoints e ON e.key = s.endpoint
        LEFT JOIN source_refusals r ON r.source = s.key
        WHERE s.application = ?1 AND s.id = ?2 AND s.deleted_at IS NULL",
    )
    .bind(application.as_uuid())
    .bind(id.as_str())
    .fetch_optional(executor)
    .await
}
