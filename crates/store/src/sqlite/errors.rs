//! What the driver's errors mean to a caller.

use crate::StoreError;

/// Primary result codes that decisions depend on (<https://www.sqlite.org/rescode.html>).
mod result_code {
    pub(super) const ERROR: i32 = 1;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const IOERR: i32 = 10;
    pub(super) const FULL: i32 = 13;
    pub(super) const CANTOPEN: i32 = 14;
}

/// Why a transaction was given up, before the name of its operation is known.
#[derive(Debug)]
pub(super) enum Fault {
    /// The driver's error.
    Driver(sqlx::Error),
    /// An error that says all by itself.
    Store(StoreError),
}

impl Fault {
    pub(super) fn in_operation(self, operation: &'static str) -> StoreError {
        match self {
            Self::Driver(error) => store_error(operation, error),
            Self::Store(error) => error,
        }
    }
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The primary result code of an error, if the database reported it.
fn result_code_of(error: &sqlx::Error) -> Option<i32> {
    let extended: i32 = error.as_database_error()?.code()?.parse().ok()?;
    // The upper bits only tell more of the same.
    Some(extended & 0xff)
}

/// Whether another connection held the lock that was wanted.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(result_code_of(error), Some(result_code::BUSY | result_code::LOCKED))
}

/// Sorts an error by what the caller can do about it.
pub(super) fn store_error(operation: &'static str, error: sqlx::Error) -> StoreError {
    let code = result_code_of(&error);
    let source = Box::new(error);
    match code {
        Some(result_code::BUSY | result_code::LOCKED) => {
            StoreError::Contended { operation, source }
        }
        Some(result_code::IOERR | result_code::FULL | result_code::CANTOPEN) => {
            StoreError::Unavailable { operation, source }
        }
        // Only the text tells a missing table from other errors: this file was never migrated.
        Some(result_code::ERROR) if source.to_string().contains("no such table") => {
            StoreError::SchemaOutdated { found: 0, needed: crate::SCHEMA_VERSION }
        }
        Some(_) => StoreError::Refused { operation, source },
        None => match *source {
            sqlx::Error::Io(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => StoreError::Unavailable { operation, source },
            _ => StoreError::Refused { operation, source },
        },
    }
}
