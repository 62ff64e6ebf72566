//! A database beside the one named, for a demonstration or a proof.

use std::fmt;

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};

use crate::StoreError;
use crate::postgres::errors::store_error;
use crate::postgres::pool::connect_options;

/// A scratch database that exists until it is dropped with [`drop_scratch`].
#[derive(Clone)]
pub struct ScratchDatabase {
    /// Its address. It carries the password of the address that it was made from.
    pub url: String,
    name: String,
    made_from: String,
}

impl fmt::Debug for ScratchDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Both addresses may carry a password.
        f.debug_struct("ScratchDatabase").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ScratchDatabase {
    /// Makes an empty database on the server of `url`. The role needs the right CREATEDB.
    pub async fn create(url: &str) -> Result<Self, StoreError> {
        const OPERATION: &str = "schema::scratch";
        let options = connect_options(url)?;
        let name = format!("fencepost_scratch_{}", crate::new_id::uuid_now().simple());
        let mut connection =
            options.connect().await.map_err(|error| store_error(OPERATION, error))?;
        connection
            .execute(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .await
            .map_err(|error| store_error(OPERATION, error))?;
        connection.close().await.map_err(|error| store_error(OPERATION, error))?;
        let url_of_scratch = options.database(&name).to_url_lossy().to_string();
        Ok(Self { url: url_of_scratch, name, made_from: url.to_owned() })
    }

    /// The database's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Drops a scratch database, ending the connections to it.
pub async fn drop_scratch(scratch: &ScratchDatabase) -> Result<(), StoreError> {
    const OPERATION: &str = "schema::scratch";
    let mut connection = connect_options(&scratch.made_from)?
        .connect()
        .await
        .map_err(|error| store_error(OPERATION, error))?;
    connection
        .execute(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", scratch.name)))
        .await
        .map_err(|error| store_error(OPERATION, error))?;
    connection.close().await.map_err(|error| store_error(OPERATION, error))
}
