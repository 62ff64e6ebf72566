//! The HTTP API as a caller sees it: real requests over a socket, on an SQLite store of its own for
//! each test.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets something else has failed"
)]

mod access;
mod applications;
mod bodies;
mod calling_off;
mod connections;
mod deliveries;
mod documented;
mod endpoint_changes;
mod endpoints;
mod forms;
mod harness;
mod hostile;
mod idempotency;
mod inbound;
mod keys;
mod life;
mod lists;
mod openapi;
mod operational_endpoint;
mod paths;
mod process;
mod rate_limits;
mod readiness;
mod secrets;
mod shutdown;
mod sources;
mod submissions;
