//! What can go wrong with a database, as far as a caller can act on it.

use std::error::Error;

/// The cause of a [`StoreError`], from the database driver.
pub type Cause = Box<dyn Error + Send + Sync + 'static>;

/// Why a store gave no answer. Nothing is half stored when one is returned, but a lost connection
/// leaves open whether a write was committed: repeating it is safe for every operation here.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, the connection broke, or no connection was free in time.
    #[error("the database is not available ({operation})")]
    Unavailable {
        /// The store function that was running.
        operation: &'static str,
        /// What the driver said.
        #[source]
        source: Cause,
    },
    /// Locks were not had in time, or the database chose this transaction to end a deadlock.
    #[error("the database was too busy with other writers ({operation})")]
    Contended {
        /// The store function that was running.
        operation: &'static str,
        /// What the driver said.
        #[source]
        source: Cause,
    },
    /// The database holds no Fencepost schema, or an older one than this build was written for.
    #[error(
        "the schema is at version {found}, this build needs {needed}; run `fencepost migrate` \
         against this database"
    )]
    SchemaOutdated {
        /// The version found, 0 if there is none.
        found: i32,
        /// The version needed.
        needed: i32,
    },
    /// A newer build has changed the schema in a way that this build does not understand.
    #[error(
        "the schema needs a build for version {compatible_from} or later, this one is for \
         {supported}; install a newer Fencepost"
    )]
    SchemaTooNew {
        /// The oldest build that still understands the schema.
        compatible_from: i32,
        /// The version of this build.
        supported: i32,
    },
    /// A row holds a combination of values that no statement of ours writes.
    #[error("{table} has an impossible {column} in row {row}")]
    Corrupt {
        /// The table, without its schema.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row's key.
        row: String,
    },
    /// A secret could not be unsealed.
    #[error("the secret {secret} of endpoint {endpoint} cannot be unsealed")]
    Sealed {
        /// The secret's id.
        secret: String,
        /// The endpoint's key.
        endpoint: String,
        /// Why.
        #[source]
        source: crate::sealing::SealError,
    },
    /// A second server wants the same SQLite file.
    #[error("another server is using {path}; SQLite serves one process, use PostgreSQL for more")]
    InUse {
        /// The file.
        path: String,
    },
    /// The database's address is not usable.
    #[error("{message}")]
    Address {
        /// What is wrong with it, and what is expected.
        message: String,
    },
    /// The database refused the statement: a fault of ours or of its set-up.
    #[error("the database refused a statement ({operation})")]
    Refused {
        /// The store function that was running.
        operation: &'static str,
        /// What the driver said.
        #[source]
        source: Cause,
    },
}

impl StoreError {
    /// Whether the same call may well succeed later, with nothing changed by a person.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Contended { .. })
    }

    /// The error and its sources in one line, for a log.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = self.source();
        while let Some(error) = source {
            text.push_str(": ");
            text.push_str(&error.to_string());
            source = error.source();
        }
        text
    }
}
