//! The delivery worker of Fencepost: dispatch, send, record, maintain.
//!
//! It carries. The domain decides what an outcome means, the store settles who may act on it; nothing
//! here is a statement or a verdict, and no transaction, lock or connection of the database is held
//! while a request is open.
//!
//! ```text
//! dispatch   whose turn it is, and a claim of as much as can be sent at once
//!    |
//! load       where each goes, and its bytes; bounded in memory
//!    |
//! deliver    time left? send, decide, report ------- give_back   what is not sent
//!    |
//! record     results in batches, until the database has them; then the place is free again
//! ```
//!
//! A place among the open requests is taken before the claim and is free when the result is
//! recorded. So every queue between the two is bounded by the number of places, and a slow database
//! makes the worker claim less.
//!
//! Beside them `maintain` keeps the tables: every worker asks for the lead, one has it.
//!
//! Local time only ever stops something early: whether a request may still be started is measured on
//! the monotonic clock from before its claim was sent. Leases and due times are the database's.

mod args;
mod backoff;
mod claim;
mod counting;
mod database;
mod deliver;
mod dispatch;
mod entry;
mod give_back;
mod guard;
mod health;
mod listen;
mod load;
mod maintain;
mod private;
mod record;
mod running;
pub mod send;
mod settings;

pub use args::{Args, PrivateListen};
pub use entry::main_entry;
pub use health::{Health, NotReady};
pub use private::serve_private;
pub use running::{RunningWorker, start};
pub use settings::Settings;
