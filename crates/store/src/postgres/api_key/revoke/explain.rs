//! Why a key was not revoked, as far as that can be seen afterwards.

use uuid::Uuid;

use crate::StoreError;
use crate::api_key::Revocation;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn explain(
    pool: &Pool,
    application: Option<Uuid>,
    id: Uuid,
) -> Result<Revocation, StoreError> {
    let revoked = sqlx::query_scalar!(
        r#"-- postgres::api_key::revoke::explain
        SELECT revoked_at IS NOT NULL AS "revoked!" FROM fencepost.api_keys
        WHERE id = $1 AND ($2::uuid IS NULL OR application = $2)"#,
        id,
        application,
    )
    .fetch_optional(pool)
    .await
    .map_err(|error| store_error("api_key::revoke", error))?;
    Ok(match revoked {
        None => Revocation::Missing,
        Some(true) => Revocation::WasRevoked,
        Some(false) => Revocation::LastAdmin,
    })
}
