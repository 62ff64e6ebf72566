//! What a rotation is decided on: how many secrets are live, and of which version that is true.

use domain::id::SourceKey;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn read_current(
    pool: &Pool,
    source: SourceKey,
) -> Result<Option<(i64, u32)>, StoreError> {
    let row = sqlx::query!(
        r#"-- postgres::source::rotate_secret::read_current
        SELECT s.version, (
            SELECT count(*) FROM fencepost.source_secrets x
            WHERE x.source = s.key
                AND (x.retires_at IS NULL OR x.retires_at > statement_timestamp())
        ) AS "live!"
        FROM fencepost.sources s
        WHERE s.key = $1 AND s.deleted_at IS NULL"#,
        source.as_uuid(),
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error(super::OPERATION, error))?;
    Ok(row.map(|row| (row.version, u32::try_from(row.live).unwrap_or(u32::MAX))))
}
