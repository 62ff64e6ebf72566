//! What both stores are told when they are opened.

use std::time::Duration;

use secrecy::SecretString;

use crate::sealing::Sealer;
use crate::wake_up::DueSignal;

/// Settings of a store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Seals and opens endpoint secrets.
    pub sealer: Sealer,
    /// Where to listen for wake-ups, if not where the store is: past a pooler (PostgreSQL). None by
    /// default.
    pub listen_url: Option<SecretString>,
    /// How long a failed delivery can be replayed, and history is kept. 30 days by default.
    pub retention: Duration,
    /// How long an idempotency key is remembered, at most the retention. 30 days by default.
    pub idempotency_window: Duration,
    /// How long a submission waits for a key that another open transaction holds (PostgreSQL). 250 ms by
    /// default.
    pub key_wait: Duration,
    /// Connections for the api's statements (PostgreSQL). 10 by default.
    pub general_connections: u32,
    /// Connections for claim and record (PostgreSQL). 4 by default.
    pub dispatch_connections: u32,
    /// How long a caller waits for a free connection. 5 s by default.
    pub acquire_timeout: Duration,
    /// How long a statement may take, as this process measures it, beyond which the server is taken for
    /// dead (PostgreSQL). 15 s by default: longer than the 10 s that the server itself allows, so that a
    /// living one speaks first.
    pub statement_deadline: Duration,
    /// Raised when something may be due. Two stores of one process on one database share it.
    pub due_signal: DueSignal,
}

impl StoreOptions {
    /// The defaults, with this sealer.
    #[must_use]
    pub fn new(sealer: Sealer) -> Self {
        let month = Duration::from_hours(30 * 24);
        Self {
            sealer,
            listen_url: None,
            retention: month,
            idempotency_window: month,
            key_wait: Duration::from_millis(250),
            general_connections: 10,
            dispatch_connections: 4,
            acquire_timeout: Duration::from_secs(5),
            statement_deadline: Duration::from_secs(15),
            due_signal: DueSignal::default(),
        }
    }
}
