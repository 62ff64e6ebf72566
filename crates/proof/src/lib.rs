//! What a user runs to see that the promises hold, on a database of their own.
//!
//! Nothing here is believed because a library says so: every check races real connections, or real
//! processes where the promise is about processes, on a scratch database beside the user's. Beside it
//! runs the naive form of the same statement, so that a race which the machine would have hidden anyway
//! proves nothing.
//!
//! This crate is the only one but the store that writes SQL. It sees the store as every caller does, and
//! api and worker only as processes.

mod barrier;
pub mod bench;
mod client;
mod connections;
pub mod contestant;
mod effects;
mod ground;
mod processes;
mod scratch;
mod transaction;
pub mod verify;

pub use scratch::Scratch;
