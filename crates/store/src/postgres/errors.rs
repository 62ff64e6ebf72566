//! What the driver's errors mean to a caller.

use std::borrow::Cow;

use sqlx::error::DatabaseError;

use crate::StoreError;

/// `SQLSTATE` classes and codes that decisions depend on (PostgreSQL, appendix A).
pub(super) mod sqlstate {
    pub(in super::super) const CHECK_VIOLATION: &str = "23514";
    pub(in super::super) const UNDEFINED_TABLE: &str = "42P01";
    pub(in super::super) const QUERY_CANCELED: &str = "57014";
    pub(in super::super) const OBJECT_NOT_IN_PREREQUISITE_STATE: &str = "55000";
    pub(in super::super) const UNIQUE_VIOLATION: &str = "23505";
    pub(in super::super) const LOCK_NOT_AVAILABLE: &str = "55P03";
    pub(in super::super) const DEADLOCK_DETECTED: &str = "40P01";
    pub(in super::super) const SERIALIZATION_FAILURE: &str = "40001";
}

/// The `SQLSTATE` of an error, if the database reported it.
pub(super) fn sqlstate_of(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(DatabaseError::code).map(Cow::into_owned)
}

/// Classes and codes of errors that are the server's state and not the statement's fault.
const UNAVAILABLE: [&str; 9] = ["08", "25", "26000", "28", "3D000", "53", "55", "57", "58"];

/// Sorts an error by what the caller can do about it.
pub(super) fn store_error(operation: &'static str, error: sqlx::Error) -> StoreError {
    let code = sqlstate_of(&error);
    let source = Box::new(error);
    match code.as_deref() {
        // 40: rolled back to end a conflict. 55P03: a lock was not had in time.
        Some(code) if code.starts_with("40") || code == sqlstate::LOCK_NOT_AVAILABLE => {
            StoreError::Contended { operation, source }
        }
        // 08: connection. 53: resources. 57: stopped by an operator or a time-out. 58: its system.
        // 28: not let in. 25: a standby, or a session whose transaction was ended. 26000: its prepared
        // statements are gone. 3D000: no such database. 55: not in the state for it. All of them pass
        // when somebody has done something about the server, and none is the statement's fault.
        Some(code) if UNAVAILABLE.iter().any(|class| code.starts_with(class)) => {
            StoreError::Unavailable { operation, source }
        }
        // 3F000 and 42P01: no schema, no table. This database was never migrated.
        Some("3F000" | "42P01") => {
            StoreError::SchemaOutdated { found: 0, needed: crate::SCHEMA_VERSION }
        }
        Some(_) => StoreError::Refused { operation, source },
        None => match *source {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => StoreError::Unavailable { operation, source },
            _ => StoreError::Refused { operation, source },
        },
    }
}
