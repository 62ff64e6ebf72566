//! The live sources of an application, newest first.

use domain::id::ApplicationKey;
use uuid::Uuid;

use super::row::SourceRow;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::source::Source;
use crate::{Page, StoreError};

pub(in crate::postgres) async fn list(
    pool: &Pool,
    application: ApplicationKey,
    page: Page,
) -> Result<Vec<Source>, StoreError> {
    let rows = sqlx::query_as!(
        SourceRow,
        r#"-- postgres::source::list
        SELECT s.key, s.application, s.id, s.name, e.id AS endpoint_id, s.scheme::text AS "scheme!",
            s.event_id::text AS event_id, s.headers, coalesce(r.refused, 0) AS "refused!",
            coalesce(r.newest::text, '[]') AS "refusals!", s.version, s.created_at, s.updated_at
        FROM fencepost.sources s
        JOIN fencepost.endpoints e ON e.key = s.endpoint
        LEFT JOIN fencepost.source_refusals r ON r.source = s.key
        WHERE s.application = $1 AND s.deleted_at IS NULL AND s.key < $2
        ORDER BY s.key DESC
        LIMIT $3"#,
        application.as_uuid(),
        page.before.unwrap_or(Uuid::max()),
        i64::from(page.limit),
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("source::list", error))?;
    rows.into_iter().map(SourceRow::source).collect()
}
