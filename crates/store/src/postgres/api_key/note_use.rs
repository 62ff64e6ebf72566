//! Notes that a key is used: at most one write an hour for each key, whoever else notes it at once.

use uuid::Uuid;

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(in crate::postgres) async fn note_use(pool: &Pool, id: Uuid) -> Result<bool, StoreError> {
    let noted = sqlx::query!(
        "-- postgres::api_key::note_use
        UPDATE fencepost.api_keys SET last_used_at = statement_timestamp()
        WHERE id = $1 AND revoked_at IS NULL
            AND (last_used_at IS NULL OR last_used_at < statement_timestamp() - interval '1 hour')",
        id,
    )
    .execute(pool)
    .await
    .map_err(|error| store_error("api_key::note_use", error))?;
    Ok(noted.rows_affected() > 0)
}
