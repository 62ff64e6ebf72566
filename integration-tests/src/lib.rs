//! What the tests of Fencepost stand on: a real PostgreSQL, real processes, a receiver that
//! misbehaves as it is told, and nothing that sleeps.
//!
//! | module | gives a test |
//! | --- | --- |
//! | [`postgres`] | a database of its own, cloned from a migrated template |
//! | [`proxy`] | an address that outlives the server behind it |
//! | [`process`] | api and worker as processes that can be killed |
//! | [`receiver`] | a scripted endpoint that remembers every request |
//! | [`http`] | a client of the api |
//! | [`samples`] | real payloads |
//! | [`race`] | contestants that start at the same instant |
//!
//! Waiting is always for a signal: a request that arrived, a line that was printed, a process that
//! ended. Where another process gives none, [`eventually()`] asks until a deadline.
//!
//! Every fallible function answers with `anyhow::Result`, so that a test says `?` and its failure
//! names what was being done.

mod eventually;
pub mod http;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod race;
pub mod receiver;
pub mod samples;

pub use eventually::eventually;
