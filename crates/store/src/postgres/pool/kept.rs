//! Connections between two statements.
//!
//! The driver's pool pings each connection that comes back, which is another round trip for each statement.
//! One whose statement was answered waits here for the next, for a moment, without that. What waits longer, or
//! was used for long, goes back to the pool, which closes what is idle or too old.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPool;
use sqlx::{Error, Postgres};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::bounded::give_back;

/// How long a connection waits here for its next statement.
const WAITS_FOR: Duration = Duration::from_secs(1);
/// How long a connection is used before the pool looks at it again.
const USED_FOR: Duration = Duration::from_mins(1);

/// The connections of one pool that wait for their next statement.
pub(super) struct Kept {
    pool: PgPool,
    deadline: Duration,
    /// As many as the pool has connections: whoever has one finds a connection here or there.
    turns: Arc<Semaphore>,
    /// The last used on top.
    waiting: Mutex<Vec<Waiting>>,
}

struct Waiting {
    connection: PoolConnection<Postgres>,
    taken: Instant,
    since: Instant,
}

/// What belongs to a connection that is in use.
pub(super) struct Turn {
    /// When it came from the pool.
    taken: Instant,
    _permit: OwnedSemaphorePermit,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

impl Kept {
    /// For a pool that nobody else takes connections from.
    pub(super) fn new(pool: PgPool, deadline: Duration) -> Self {
        let connections = usize::try_from(pool.options().get_max_connections());
        let turns = Semaphore::new(connections.unwrap_or(Semaphore::MAX_PERMITS));
        Self { pool, deadline, turns: Arc::new(turns), waiting: Mutex::default() }
    }

    /// A connection that waits, or one from the pool.
    pub(super) async fn take(&self) -> Result<(PoolConnection<Postgres>, Turn), Error> {
        let permit = Arc::clone(&self.turns).acquire_owned();
        let permit = timeout(self.pool.options().get_acquire_timeout(), permit).await;
        let permit = permit.map_err(|_| Error::PoolTimedOut)?.map_err(|_| Error::PoolClosed)?;
        if let Some(Waiting { connection, taken, .. }) = self.take_waiting() {
            return Ok((connection, Turn { taken, _permit: permit }));
        }
        let taken = Instant::now();
        Ok((self.pool.acquire().await?, Turn { taken, _permit: permit }))
    }

    /// Takes a connection back whose statement was answered.
    pub(super) fn keep(&self, connection: PoolConnection<Postgres>, turn: Turn) {
        let since = Instant::now();
        if since.duration_since(turn.taken) < USED_FOR {
            self.waiting().push(Waiting { connection, taken: turn.taken, since });
        } else {
            give_back(connection, self.deadline);
        }
        // From here on others find it.
        drop(turn);
    }

    /// The last one that was used. Those that have waited for long, which lie below, go back to the pool.
    fn take_waiting(&self) -> Option<Waiting> {
        let mut waiting = self.waiting();
        let stale = waiting.partition_point(|one| one.since.elapsed() >= WAITS_FOR);
        let stale: Vec<Waiting> = waiting.drain(..stale).collect();
        let found = waiting.pop();
        drop(waiting);
        for stale in stale {
            give_back(stale.connection, self.deadline);
        }
        found
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        // Nothing in there panics half way.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Kept {
    /// There may be no runtime any more to give them back in.
    fn drop(&mut self) {
        for waiting in self.waiting().drain(..) {
            drop(waiting.connection.detach());
        }
    }
}
