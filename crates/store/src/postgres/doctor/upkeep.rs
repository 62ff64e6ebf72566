//! Who does the upkeep: every worker asks to, so somebody does while one lives.

use std::time::Duration;

use domain::health::Upkeep;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn upkeep(pool: &Pool) -> Result<Upkeep, StoreError> {
    sqlx::query!(
        r#"-- postgres::doctor::upkeep
        SELECT l.holder, l.expires_at > statement_timestamp() AS "lives!",
            extract(epoch FROM statement_timestamp() - l.expires_at)::float8 AS "ended_ago!"
        FROM fencepost.leaders l
        WHERE l.role = 'maintenance'"#,
    )
    .map(|row| Upkeep {
        holder: Some(row.holder),
        lives: row.lives,
        ended_ago: Duration::try_from_secs_f64(row.ended_ago).unwrap_or_default(),
    })
    .fetch_optional(pool)
    .await
    .map(Option::unwrap_or_default)
    .map_err(|error| store_error("doctor::upkeep", error))
}
