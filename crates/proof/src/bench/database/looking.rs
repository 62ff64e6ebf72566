//! What the backlog scenario needs of the database: buffers, sessions, an old snapshot.

use std::time::{Duration, Instant};

use anyhow::bail;
use sqlx::pool::PoolConnection;
use sqlx::{Executor as _, Postgres};

use super::Database;
use crate::bench::usage::Session;

/// How long the end of a session may take.
const SESSIONS_END: Duration = Duration::from_secs(30);

/// A session that sees the database as it was.
#[derive(Debug)]
pub(in crate::bench) struct Snapshot {
    connection: PoolConnection<Postgres>,
}

impl Snapshot {
    pub(in crate::bench) async fn release(mut self) -> anyhow::Result<()> {
        self.connection.execute("COMMIT").await?;
        Ok(())
    }
}

impl Database {
    /// What autovacuum would have done by the time the tables grew so large.
    pub(in crate::bench) async fn vacuum(&self) -> anyhow::Result<()> {
        self.pool
            .execute(
                "VACUUM (ANALYZE) fencepost.deliveries, fencepost.settled_deliveries,
                    fencepost.attempts, fencepost.submissions, fencepost.endpoint_schedule",
            )
            .await?;
        Ok(())
    }

    /// Whether there is an endpoint of this id.
    pub(in crate::bench) async fn has_endpoint(&self, id: &str) -> anyhow::Result<bool> {
        let has = sqlx::query_scalar(
            "-- proof::bench::database::has_endpoint
            SELECT EXISTS (SELECT FROM fencepost.endpoints WHERE id = $1)",
        );
        Ok(has.bind(id).fetch_one(&self.pool).await?)
    }

    /// Pages that sessions have touched, as far as they have told.
    pub(in crate::bench) async fn buffers(&self) -> anyhow::Result<u64> {
        let touched: i64 = sqlx::query_scalar(
            "-- proof::bench::database::buffers
            SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()",
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(u64::try_from(touched)?)
    }

    /// The sessions that the store has on this database, by the numbers that the server knows them by.
    pub(in crate::bench) async fn sessions_of_the_store(&self) -> anyhow::Result<Vec<i32>> {
        let sessions = sqlx::query_scalar(
            "-- proof::bench::database::sessions_of_the_store
            SELECT pid FROM pg_stat_activity
            WHERE application_name = 'fencepost' AND datname = current_database()",
        );
        Ok(sessions.fetch_all(&self.pool).await?)
    }

    /// The processes of these sessions. None where one cannot be seen.
    pub(in crate::bench) async fn processes_of(
        &self,
        sessions: &[i32],
    ) -> anyhow::Result<Option<Vec<Session>>> {
        let database: String = sqlx::query_scalar(
            "-- proof::bench::database::processes_of
            SELECT current_database()::text",
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(sessions.iter().map(|number| Session::find(*number, &database)).collect())
    }

    /// Waits until these have ended.
    pub(in crate::bench) async fn wait_for_the_end_of(
        &self,
        sessions: &[i32],
    ) -> anyhow::Result<()> {
        let until = Instant::now() + SESSIONS_END;
        while self.sessions_of_the_store().await?.iter().any(|it| sessions.contains(it)) {
            if Instant::now() > until {
                bail!("a session of the store did not end");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Holds what the database is now, for as long as the answer lives.
    pub(in crate::bench) async fn hold_a_snapshot(&self) -> anyhow::Result<Snapshot> {
        let mut connection = self.pool.acquire().await?;
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        // The snapshot is taken by the first statement.
        connection.execute("SELECT version FROM fencepost.schema_version").await?;
        Ok(Snapshot { connection })
    }
}
