//! The harness itself: what the other tests rely on without looking.

mod clients;
mod databases;
mod processes;
mod receivers;
