//! The HTTP API of Fencepost.
//!
//! A request is parsed, the domain is asked once, the store is called, and the answer is rendered.
//! Nothing is decided here about races or about time: both belong to the database. This crate has no
//! SQL and no HTTP client, so nothing that a caller sends can make it send anything.
//!
//! | module | does |
//! | --- | --- |
//! | `routes` | one file per call, each in the order request, response, handler, tests; `table` is the one way to add a call |
//! | `auth` | who calls, and whether the key's role allows it: checked before every handler |
//! | `admission` | the same for submissions, with their endpoint and budgets: one statement settles all |
//! | `openapi` | the description of the calls, made from the table; `/docs` shows it |
//! | `body`, `fields` | reads what a caller sends, within limits, and names what is wrong with it |
//! | `committer` | stores submissions in groups: what arrives during a commit shares the next |
//! | `batches` | asks the store: what is asked during a statement shares the next |
//! | `rate_limit` | spends units of limits that all processes share: those who wait reserve together |
//! | `problem` | every answer that is not a success (RFC 9457), and the table of its codes |
//! | `request_log`, `unread_body` | what happens around every request |
//! | `connection` | a connection that its peer cannot hold for nothing |
//! | `waker` | tells workers that something is due |
//! | `server`, `settings` | listens, and stops gracefully |
//! | `trivial` | the same server with one call that does nothing, for the bench |
//!
//! Every queue and buffer is bounded by [`Settings`]: connections, body bytes, and the time that each
//! part of a request may take.
#![deny(missing_docs)]

mod admission;
mod auth;
mod batches;
mod body;
mod committer;
mod connection;
mod entry;
mod fields;
mod instant;
mod list;
mod openapi;
mod problem;
mod rate_limit;
mod request_log;
mod routes;
mod server;
mod settings;
mod trivial;
mod unread_body;
mod waker;

pub use committer::{CommitLimits, Committer, NotAccepted};
pub use entry::main_entry;
pub use rate_limit::source::{SourceLimit, SourceSecret};
pub use routes::{DescribedCall, described_calls, document};
pub use server::{RunningApi, start};
pub use settings::{Args, LimitArgs, Rate, RateArgs, Settings, SourceSecretArg};
pub use trivial::trivial_entry;
pub use waker::Waker;
