//! Every SQL statement of Fencepost.
//!
//! [`Store`] is what the api and the worker see. It has two implementations with the same guards and
//! the same answers: `postgres`, the shared authority in production, and `sqlite`, the embedded
//! default for one machine. File for file they carry the same names.
//!
//! The database is the authority on every race and on time: due times and leases are compared with
//! its clock alone. Losing a race is a variant of an answer, never an error.
#![deny(missing_docs)]

pub mod admission;
pub mod api_key;
pub mod application;
pub mod codes;
pub mod delivery;
pub mod doctor;
pub mod endpoint;
mod error;
mod hex;
pub mod hold;
pub mod life;
pub mod maintenance;
pub mod new_id;
mod open;
pub mod operational;
mod options;
pub mod outbox;
pub mod rate_limit;
pub mod receipt;
pub mod sealed_headers;
pub mod sealing;
pub mod secret;
pub mod source;
mod store;
pub mod submission;
pub mod wake_up;

#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use error::{Cause, StoreError};
pub use maintenance::Maintenance;
pub use open::{Backend, migrate, open};
pub use options::StoreOptions;
pub use store::{CreatedWindow, Page, Store};

/// The version of the schema that this build was written for: the number of its newest migration.
pub const SCHEMA_VERSION: i32 = 16;
