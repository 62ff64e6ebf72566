//! Dead rows, as the statistics estimate them.

use domain::health::DeadRows;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn dead_rows(pool: &Pool) -> Result<Vec<DeadRows>, StoreError> {
    sqlx::query!(
        r#"-- postgres::doctor::dead_rows
        SELECT t.relname::text AS "table!", t.n_dead_tup AS "dead!", t.n_live_tup AS "live!"
        FROM pg_catalog.pg_stat_user_tables t
        WHERE t.schemaname = 'fencepost' AND t.n_dead_tup > 0
        ORDER BY t.n_dead_tup DESC
        LIMIT 20"#,
    )
    .map(|row| DeadRows {
        table: row.table,
        dead: row.dead.unsigned_abs(),
        live: row.live.unsigned_abs(),
    })
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("doctor::dead_rows", error))
}
