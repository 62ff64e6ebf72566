//! Brings the schema to this build's version.

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{ConnectOptions, Connection};

use super::partitions;
use crate::postgres::errors::store_error;
use crate::postgres::pool::connect_options;
use crate::{SCHEMA_VERSION, StoreError};

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/postgres");

/// Applies the migrations that are missing, and makes partitions from 2 days back to 14 days ahead.
///
/// Any number of processes may do it at once: they wait for one another on a session advisory lock,
/// so the address must lead to the server itself and not to a transaction pooler. A schema that is
/// newer than this build is left alone.
pub async fn migrate(url: &str) -> Result<(), StoreError> {
    let mut connection = connect_options(url)?
        .connect()
        .await
        .map_err(|error| store_error("schema::migrate", error))?;
    let mut migrator = Migrator { migrations: MIGRATIONS.migrations.clone(), ..Migrator::DEFAULT };
    // The bookkeeping lives in our schema as well: an application's own migrations never meet it.
    migrator.create_schema("fencepost");
    migrator.dangerous_set_table_name("fencepost.migrations");
    migrator.run_direct(None, &mut connection, false).await.map_err(migrate_error)?;
    partitions::ensure(&mut connection).await?;
    connection.close().await.map_err(|error| store_error("schema::migrate", error))
}

fn migrate_error(error: MigrateError) -> StoreError {
    match error {
        MigrateError::VersionMissing(version) => StoreError::SchemaTooNew {
            compatible_from: i32::try_from(version).unwrap_or(i32::MAX),
            supported: SCHEMA_VERSION,
        },
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
            store_error("schema::migrate", error)
        }
        other => StoreError::Refused { operation: "schema::migrate", source: Box::new(other) },
    }
}
