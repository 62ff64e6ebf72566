//! Revokes a key, unless it is the last live admin key of all applications.
//!
//! Two operators who revoke each other's keys at once would both see another admin: the admin keys
//! are locked first, in the order of their ids, and what is locked is read again after a wait. The
//! EXISTS names no column of the row, so it is decided once, before that row is touched. It answers
//! applied or not applied; why not is read by a second statement.

mod explain;

use domain::id::ApplicationKey;
use uuid::Uuid;

use crate::StoreError;
use crate::api_key::Revocation;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::postgres::retry::after_conflict;

pub(in crate::postgres) async fn revoke(
    pool: &Pool,
    application: Option<ApplicationKey>,
    id: Uuid,
) -> Result<Revocation, StoreError> {
    let application = application.map(ApplicationKey::as_uuid);
    let revoked = after_conflict(|| async {
        sqlx::query!(
            "-- postgres::api_key::revoke
            WITH admins AS MATERIALIZED (
                SELECT id FROM fencepost.api_keys
                WHERE role = 1 AND application IS NULL AND revoked_at IS NULL
                ORDER BY id
                FOR NO KEY UPDATE
            )
            UPDATE fencepost.api_keys k SET revoked_at = statement_timestamp()
            WHERE k.id = $1 AND k.revoked_at IS NULL
                AND ($2::uuid IS NULL OR k.application = $2)
                AND (
                    k.role <> 1 OR k.application IS NOT NULL
                    OR EXISTS (SELECT FROM admins WHERE admins.id <> $1)
                )",
            id,
            application,
        )
        .execute(pool)
        .await
    })
    .await
    .map_err(|error| store_error("api_key::revoke", error))?;
    if revoked.rows_affected() > 0 {
        return Ok(Revocation::Revoked);
    }
    explain::explain(pool, application, id).await
}
