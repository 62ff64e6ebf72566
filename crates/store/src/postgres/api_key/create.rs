//! Stores the digest of a key.

use domain::id::ApplicationKey;
use sqlx::PgPool;

use crate::api_key::NewApiKey;
use crate::postgres::errors::store_error;
use crate::{StoreError, codes};

pub(in crate::postgres) async fn create(pool: &PgPool, key: &NewApiKey) -> Result<(), StoreError> {
    let digest = key.digest();
    sqlx::query!(
        "-- postgres::api_key::create
        INSERT INTO fencepost.api_keys (id, name, digest, shown_prefix, role, application)
        VALUES ($1, $2, $3, $4, $5, $6)",
        key.id,
        key.name,
        digest.as_bytes(),
        key.shown_prefix(),
        codes::of_role(key.role),
        key.application.map(ApplicationKey::as_uuid),
    )
    .execute(pool)
    .await
    .map(drop)
    .map_err(|error| store_error("api_key::create", error))
}
