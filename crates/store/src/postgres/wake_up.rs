//! Wake-ups between processes: `NOTIFY` and `LISTEN` on a channel that has the schema's name.

pub(super) mod listen;
pub(super) mod notify_due;

/// Channels belong to a database, not to a schema, so the name tells whose it is.
const CHANNEL: &str = "fencepost_due";
