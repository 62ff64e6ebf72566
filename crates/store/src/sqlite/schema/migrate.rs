//! Brings the schema to this build's version.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use crate::sqlite::errors::store_error;
use crate::sqlite::pool::{connect_options, path_of_url};
use crate::sqlite::server_lock;
use crate::{SCHEMA_VERSION, StoreError};

const OPERATION: &str = "schema::migrate";

/// The table that tells which migrations were applied.
const BOOKKEEPING: &str = "fencepost_migrations";

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/sqlite");

/// Applies the migrations that are missing, and makes the file if it is.
///
/// Any number of processes may do it at once: they wait for one another on a lock file, since sqlx
/// has no lock for SQLite. A schema that is newer than this build is left alone.
pub async fn migrate(url: &str) -> Result<(), StoreError> {
    let path = path_of_url(url)?;
    let _alone = wait_for_lock(&path)
        .await
        .map_err(|error| StoreError::Unavailable { operation: OPERATION, source: error.into() })?;
    let mut connection = connect_options(&path)
        .create_if_missing(true)
        .connect()
        .await
        .map_err(|error| store_error(OPERATION, error))?;
    let mut migrator = Migrator { migrations: MIGRATIONS.migrations.clone(), ..Migrator::DEFAULT };
    // An application that embeds the store has migrations of its own in the same file.
    migrator.dangerous_set_table_name(BOOKKEEPING);
    take_over_bookkeeping(&mut connection).await.map_err(|error| store_error(OPERATION, error))?;
    migrator.run_direct(None, &mut connection, false).await.map_err(migrate_error)?;
    connection.close().await.map_err(|error| store_error(OPERATION, error))
}

/// Early files kept our book under the name that an application's own migrations take.
async fn take_over_bookkeeping(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let tables: Vec<String> = sqlx::query_scalar(
        "-- sqlite::schema::migrate::take_over_bookkeeping
        SELECT name FROM sqlite_schema
        WHERE type = 'table' AND name IN ('_sqlx_migrations', 'fencepost_migrations',
            'schema_version')",
    )
    .fetch_all(&mut *connection)
    .await?;
    let has = |name: &str| tables.iter().any(|table| table == name);
    if has("schema_version") && has("_sqlx_migrations") && !has(BOOKKEEPING) {
        let rename = "ALTER TABLE _sqlx_migrations RENAME TO fencepost_migrations";
        sqlx::query(rename).execute(connection).await?;
    }
    Ok(())
}

/// The lock is held until the file is dropped.
async fn wait_for_lock(database: &Path) -> io::Result<File> {
    let path: PathBuf = server_lock::beside(database, "migrate-lock");
    let waiting = tokio::task::spawn_blocking(move || {
        let file = server_lock::open(&path)?;
        file.lock()?;
        Ok(file)
    });
    waiting.await.map_err(io::Error::other)?
}

fn migrate_error(error: MigrateError) -> StoreError {
    match error {
        MigrateError::VersionMissing(version) => StoreError::SchemaTooNew {
            compatible_from: i32::try_from(version).unwrap_or(i32::MAX),
            supported: SCHEMA_VERSION,
        },
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
            store_error(OPERATION, error)
        }
        other => StoreError::Refused { operation: OPERATION, source: Box::new(other) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn migrations_started_at_once_all_end_well() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("fencepost.db").display());
        let all: Vec<_> = (0..8)
            .map(|_| {
                let url = url.clone();
                tokio::spawn(async move { migrate(&url).await })
            })
            .collect();
        for one in all {
            one.await.unwrap().unwrap();
        }
    }

    #[test]
    fn the_newest_migration_is_the_version_of_this_build() {
        let newest = MIGRATIONS.iter().map(|migration| migration.version).max();
        assert_eq!(newest, Some(i64::from(SCHEMA_VERSION)));
    }
}
