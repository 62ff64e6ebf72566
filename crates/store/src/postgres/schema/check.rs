//! Compares the schema with this build.

use crate::postgres::pool::Pool;

use crate::postgres::errors::store_error;
use crate::{SCHEMA_VERSION, StoreError};

pub(in crate::postgres) async fn check(pool: &Pool) -> Result<(), StoreError> {
    let row = sqlx::query!(
        "-- postgres::schema::check
        SELECT version, compatible_from FROM fencepost.schema_version",
    )
    .fetch_one(pool)
    .await
    .map_err(|error| store_error("schema::check", error))?;
    if row.compatible_from > SCHEMA_VERSION {
        return Err(StoreError::SchemaTooNew {
            compatible_from: row.compatible_from,
            supported: SCHEMA_VERSION,
        });
    }
    if row.version < SCHEMA_VERSION {
        return Err(StoreError::SchemaOutdated { found: row.version, needed: SCHEMA_VERSION });
    }
    Ok(())
}
