//! The live sources of an application, newest first.

use domain::id::ApplicationKey;
use sqlx::SqlitePool;

use super::row::SourceRow;
use crate::source::Source;
use crate::sqlite::codec::upper_bound;
use crate::sqlite::errors::store_error;
use crate::{Page, StoreError};

pub(in crate::sqlite) async fn list(
    readers: &SqlitePool,
    application: ApplicationKey,
    page: Page,
) -> Result<Vec<Source>, StoreError> {
    let rows: Vec<SourceRow> = sqlx::query_as(
        "-- sqlite::source::list
        SELECT s.key, s.application, s.id, s.name, e.id AS endpoint_id, s.scheme, s.event_id,
            s.headers, ifnull(r.refused, 0) AS refused, ifnull(r.newest, '[]') AS refusals,
            s.version, s.created_at, s.updated_at
        FROM sources s
        JOIN endpoints e ON e.key = s.endpoint
        LEFT JOIN source_refusals r ON r.source = s.key
        WHERE s.application = ?1 AND s.deleted_at IS NULL AND s.key < ?2
        ORDER BY s.key DESC
        LIMIT ?3",
    )
    .bind(application.as_uuid())
    .bind(upper_bound(page.before))
    .bind(page.limit)
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("source::list", error))?;
    rows.into_iter().map(SourceRow::source).collect()
}
