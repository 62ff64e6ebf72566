//! The live source of an application with an id.

use domain::id::{ApplicationKey, PublicId};

use super::row::SourceRow;
use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::source::Source;

pub(in crate::postgres) async fn find(
    pool: &Pool,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<Option<Source>, StoreError> {
    let row = sqlx::query_as!(
        SourceRow,
        r#"-- postgres::source::find
        SELECT s.key, s.application, s.id, s.name, e.id AS endpoint_id, s.scheme::text AS "scheme!",
            s.event_id::text AS event_id, s.headers, coalesce(r.refused, 0) AS "refused!",
            coalesce(r.newest::text, '[]') AS "refusals!", s.version, s.created_at, s.updated_at
        FROM fencepost.sources s
        JOIN fencepost.endpoints e ON e.key = s.endpoint
        LEFT JOIN fencepost.source_refusals r ON r.source = s.key
        WHERE s.application = $1 AND s.id = $2 AND s.deleted_at IS NULL"#,
        application.as_uuid(),
        id.as_str(),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("source::find", error))?;
    row.map(SourceRow::source).transpose()
}
