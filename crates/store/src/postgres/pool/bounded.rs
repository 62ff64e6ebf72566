//! A pool whose statements end, whatever the network does.
//!
//! A server that dies without a word (fenced, unplugged, behind a router that forgot the connection)
//! leaves a client waiting for an answer that never comes: `statement_timeout` lives on that server, and
//! the driver sets no time limit of its own. So each statement has one here. A statement that was not
//! answered in time, or whose caller went away, takes its connection with it: a connection in the middle
//! of a statement is of no use to the next caller, and asking it whether it still lives could take for ever.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgPool, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Describe, Either, Error, Execute, Executor, PgConnection, Postgres, SqlStr};
use tokio::runtime::Handle;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::kept::{Kept, Turn};
use crate::postgres::errors::sqlstate_of;

/// A pool of connections, each statement on which ends within a bound.
#[derive(Clone)]
pub(in crate::postgres) struct Pool {
    connections: PgPool,
    deadline: Duration,
    /// Of a pool that is ours alone.
    kept: Option<Arc<Kept>>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool that an application takes connections from as well.
    pub(super) fn shared(connections: PgPool, deadline: Duration) -> Self {
        Self { connections, deadline, kept: None }
    }

    /// A pool that is ours alone: its connections are kept for the next statement.
    pub(super) fn own(connections: PgPool, deadline: Duration) -> Self {
        let kept = Some(Arc::new(Kept::new(connections.clone(), deadline)));
        Self { connections, deadline, kept }
    }

    /// A connection for more than one statement. What runs on it is bounded by the server alone, so it
    /// is for maintenance, which nobody waits for. A transaction on it must run in a task that is never
    /// dropped: the driver may leave it open on its connection otherwise.
    pub(in crate::postgres) async fn acquire(&self) -> Result<Borrowed, Error> {
        let (connection, kept) = match &self.kept {
            Some(kept) => {
                let (connection, turn) = kept.take().await?;
                (connection, Some((Arc::clone(kept), turn)))
            }
            None => (self.connections.acquire().await?, None),
        };
        Ok(Borrowed { connection: Some(connection), deadline: self.deadline, kept })
    }

    async fn session(&self) -> Result<Session, Error> {
        Ok(Session { borrowed: self.acquire().await?, ended: Ended::Open })
    }
}

/// A connection that is on its way back to the pool for a bounded time.
///
/// The driver pings a connection that comes back, and would wait for ever for a silent server, with the
/// place in the pool.
pub(in crate::postgres) struct Borrowed {
    /// There until it is dropped.
    connection: Option<PoolConnection<Postgres>>,
    deadline: Duration,
    kept: Option<(Arc<Kept>, Turn)>,
}

impl Borrowed {
    pub(in crate::postgres) fn connection(&mut self) -> Result<&mut PgConnection, Error> {
        self.connection.as_deref_mut().ok_or(Error::PoolClosed)
    }

    /// Keeps it for the next statement, if its pool does so.
    fn keep(&mut self) {
        if let Some((kept, turn)) = self.kept.take()
            && let Some(connection) = self.connection.take()
        {
            kept.keep(connection, turn);
        }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            give_back(connection, self.deadline);
        }
    }
}

/// Gives a connection back to its pool.
pub(super) fn give_back(mut connection: PoolConnection<Postgres>, deadline: Duration) {
    let returning = connection.return_to_pool();
    // Without a runtime there is nobody to ping: the place is free, and the socket closed.
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(async move { timeout(deadline, returning).await });
    }
}

/// A connection for one statement.
struct Session {
    borrowed: Borrowed,
    ended: Ended,
}

/// How the statement of a session ended, and so what its connection is good for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Not, or in a way that later statements would share: it leaves the pool for good.
    Open,
    /// With an error: the pool is to look at it.
    Refused,
    /// Well.
    Answered,
}

impl Drop for Session {
    fn drop(&mut self) {
        match self.ended {
            // Detached it frees its place in the pool and closes its socket at once. Closing it in
            // order would say good-bye to a server that does not listen, for five seconds.
            Ended::Open => drop(self.borrowed.connection.take().map(PoolConnection::detach)),
            Ended::Refused => {}
            Ended::Answered => self.borrowed.keep(),
        }
    }
}

impl Session {
    fn connection(&mut self) -> Result<&mut PgConnection, Error> {
        self.borrowed.connection()
    }

    /// Ends the statement that this outcome is of.
    fn end<T>(mut self, outcome: Result<Result<T, Error>, Elapsed>) -> Result<T, Error> {
        let answer = outcome.map_err(|_| {
            let silent = "the database did not answer in time";
            Error::Io(io::Error::new(io::ErrorKind::TimedOut, silent))
        })?;
        self.ended = match &answer {
            Ok(_) => Ended::Answered,
            Err(error) if ends_the_session(error) => Ended::Open,
            Err(_) => Ended::Refused,
        };
        answer
    }
}

/// Whether an error says that this session will go on failing: it is on a server that became a standby
/// (25006), or its prepared statements are gone (26000).
fn ends_the_session(error: &Error) -> bool {
    matches!(sqlstate_of(error).as_deref(), Some("25006" | "26000"))
}

impl<'p> Executor<'p> for &'p Pool {
    type Database = Postgres;

    /// Answers when all rows are there: no statement of ours has more than a few hundred.
    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let all = async move {
            let mut session = self.session().await?;
            let rows = session.connection()?.fetch_many(query).try_collect::<Vec<_>>();
            let outcome = timeout(self.deadline, rows).await;
            session.end(outcome)
        };
        stream::once(all)
            .map_ok(|rows| stream::iter(rows.into_iter().map(Ok)))
            .try_flatten()
            .boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move {
            let mut session = self.session().await?;
            let outcome = timeout(self.deadline, session.connection()?.fetch_optional(query)).await;
            session.end(outcome)
        })
    }

    fn prepare_with<'e>(
        self,
        text: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'p: 'e,
    {
        Box::pin(async move {
            let mut session = self.session().await?;
            let preparing = session.connection()?.prepare_with(text, parameters);
            let outcome = timeout(self.deadline, preparing).await;
            session.end(outcome)
        })
    }

    fn describe<'e>(self, text: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, Error>>
    where
        'p: 'e,
    {
        Box::pin(async move {
            let mut session = self.session().await?;
            let outcome = timeout(self.deadline, session.connection()?.describe(text)).await;
            session.end(outcome)
        })
    }
}
