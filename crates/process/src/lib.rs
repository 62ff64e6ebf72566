//! What every Fencepost process does at its start and end.
//!
//! The api, the worker and the one binary share the way their settings are read, their
//! arguments for the database and the sealing keys, their logs and their way of stopping. No decision and no statement is made here.
#![deny(missing_docs)]

mod address_policy;
mod database;
mod duration;
mod hold;
mod log;
pub mod metrics;
mod sealing_key;
mod size;
mod stop;
mod store_args;

pub use address_policy::AddressPolicyArgs;
pub use database::DatabaseArgs;
pub use duration::parse_duration;
pub use hold::HoldArgs;
pub use log::{SERVICE, UNLOGGED, init_log, init_log_with, log_layer};
pub use sealing_key::{SealingArgs, load_or_create_key_file};
pub use settings::{self, ConfigArgs, Sections};
pub use size::parse_size;
pub use stop::stop_on_signal;
pub use store_args::StoreArgs;
