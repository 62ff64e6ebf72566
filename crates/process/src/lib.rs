//! What every Fencepost process does at its start and end.
//!
//! The api, the worker and the one binary share their arguments for the database and the sealing
//! keys, their logs and their way of stopping. No decision and no statement is made here.
#![deny(missing_docs)]

mod address_policy;
mod database;
mod log;
mod sealing_key;
mod stop;

pub use address_policy::AddressPolicyArgs;
pub use database::DatabaseArgs;
pub use log::{SERVICE, init_log, init_log_with};
pub use sealing_key::{SealingArgs, load_or_create_key_file};
pub use stop::stop_on_signal;
