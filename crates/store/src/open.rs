//! Which database an address means.

use std::sync::Arc;

use crate::{Store, StoreError, StoreOptions};

/// The kind of database that an address names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// `postgres://` or `postgresql://`
    Postgres,
    /// `sqlite:`
    Sqlite,
}

impl Backend {
    /// Reads the scheme of a database address.
    pub fn of_url(url: &str) -> Result<Self, StoreError> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Ok(Self::Postgres)
        } else if url.starts_with("sqlite:") {
            Ok(Self::Sqlite)
        } else {
            // The address may carry a password, so it is not repeated.
            let message = "a database address starts with postgres://, postgresql:// or sqlite:";
            Err(StoreError::Address { message: message.to_owned() })
        }
    }

    /// The name for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        }
    }
}

/// Opens the database at that address.
///
/// An unreachable PostgreSQL is no error here: the store connects when it is used, so that a process
/// can start before its database. An SQLite file is opened at once and must have been migrated.
pub async fn open(url: &str, options: StoreOptions) -> Result<Arc<dyn Store>, StoreError> {
    match Backend::of_url(url)? {
        #[cfg(feature = "postgres")]
        Backend::Postgres => Ok(Arc::new(crate::postgres::PostgresStore::open(url, options)?)),
        #[cfg(feature = "sqlite")]
        Backend::Sqlite => Ok(Arc::new(crate::sqlite::SqliteStore::open(url, options).await?)),
        #[cfg(not(all(feature = "postgres", feature = "sqlite")))]
        other => Err(StoreError::Address {
            message: format!("this build has no {} store", other.as_str()),
        }),
    }
}

/// Brings the schema at that address to this build's version, and makes partitions ahead.
///
/// Safe to call from any number of processes at once, and again.
pub async fn migrate(url: &str) -> Result<(), StoreError> {
    match Backend::of_url(url)? {
        #[cfg(feature = "postgres")]
        Backend::Postgres => crate::postgres::migrate(url).await,
        #[cfg(feature = "sqlite")]
        Backend::Sqlite => crate::sqlite::migrate(url).await,
        #[cfg(not(all(feature = "postgres", feature = "sqlite")))]
        other => Err(StoreError::Address {
            message: format!("this build has no {} store", other.as_str()),
        }),
    }
}
