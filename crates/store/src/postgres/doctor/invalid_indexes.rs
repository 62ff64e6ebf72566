//! Indexes that a build which was interrupted has left behind.

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn invalid_indexes(pool: &Pool) -> Result<Vec<String>, StoreError> {
    sqlx::query_scalar!(
        r#"-- postgres::doctor::invalid_indexes
        SELECT c.relname::text AS "name!"
        FROM pg_catalog.pg_index i
        JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'fencepost'
        WHERE NOT i.indisvalid
        ORDER BY c.relname"#,
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("doctor::invalid_indexes", error))
}
