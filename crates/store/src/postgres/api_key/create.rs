//! Stores the digest of a key.

use domain::id::ApplicationKey;

use crate::api_key::{ApiKeyView, NewApiKey};
use crate::postgres::api_key::row::ApiKeyRow;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::{StoreError, codes};

pub(in crate::postgres) async fn create(
    pool: &Pool,
    key: &NewApiKey,
) -> Result<ApiKeyView, StoreError> {
    let digest = key.digest();
    let row = sqlx::query_as!(
        ApiKeyRow,
        r#"-- postgres::api_key::create
        INSERT INTO fencepost.api_keys AS k (id, name, digest, shown_prefix, role, application)
        VALUES ($1, $2, $3, $4, $5, $6)
        RETURNING k.id, k.name, k.shown_prefix, k.role,
            (SELECT a.id FROM fencepost.applications a WHERE a.key = k.application)
                AS "application_id?",
            k.created_at, k.last_used_at, k.revoked_at"#,
        key.id,
        key.name,
        digest.as_bytes(),
        key.shown_prefix(),
        codes::of_role(key.role),
        key.application.map(ApplicationKey::as_uuid),
    )
    .fetch_one(pool)
    .await
    .map_err(|error| store_error("api_key::create", error))?;
    row.try_into()
}
