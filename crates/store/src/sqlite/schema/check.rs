//! Compares the schema with this build.

use sqlx::SqlitePool;

use crate::sqlite::errors::store_error;
use crate::{SCHEMA_VERSION, StoreError};

pub(in crate::sqlite) async fn check(readers: &SqlitePool) -> Result<(), StoreError> {
    let (version, compatible_from): (i32, i32) = sqlx::query_as(
        "-- sqlite::schema::check
        SELECT version, compatible_from FROM schema_version",
    )
    .fetch_one(readers)
    .await
    .map_err(|error| store_error("schema::check", error))?;
    if compatible_from > SCHEMA_VERSION {
        return Err(StoreError::SchemaTooNew { compatible_from, supported: SCHEMA_VERSION });
    }
    if version < SCHEMA_VERSION {
        return Err(StoreError::SchemaOutdated { found: version, needed: SCHEMA_VERSION });
    }
    Ok(())
}
