//! What the backlog scenario needs of the database: history, buffers, sessions, an old snapshot.

use std::time::{Duration, Instant};

use anyhow::bail;
use domain::id::EndpointKey;
use sqlx::pool::PoolConnection;
use sqlx::{Executor as _, Postgres};
use uuid::Uuid;

use super::Database;

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
    /// Adds deliveries that were settled with one attempt each.
    pub(in crate::bench) async fn fill_history(
        &self,
        endpoints: &[EndpointKey],
        count: u64,
    ) -> anyhow::Result<()> {
        let endpoints: Vec<Uuid> = endpoints.iter().map(|key| key.as_uuid()).collect();
        sqlx::query(
            "-- proof::bench::database::fill_history
            WITH n AS MATERIALIZED (
                SELECT ($1::uuid[])[1 + n % cardinality($1::uuid[])] AS endpoint,
                    (lpad(to_hex((extract(epoch FROM statement_timestamp()) * 1000)::bigint), 12,
                        '0') || '7' || substr(md5(random()::text), 1, 3) || '8'
                        || substr(md5(random()::text), 1, 15))::uuid AS id
                FROM generate_series(1, $2) AS n
            ), a AS (
                INSERT INTO fencepost.attempts (endpoint, delivery, claim_token, started_at,
                    recorded_at, number, duration_ms, outcome, status, late, response_truncated,
                    worker, url, response)
                SELECT endpoint, id, id, now(), now(), 1, 1, 1, 204, false, false, 'bench',
                    'http://127.0.0.1/', ''
                FROM n
            )
            INSERT INTO fencepost.settled_deliveries (endpoint, id, submission, settled_at,
                attempts, cycle_attempts, payload_bytes, state, claimed_by)
            SELECT endpoint, id, id, now(), 1, 1, 2, 4, 'bench' FROM n",
        )
        .bind(endpoints)
        .bind(i64::try_from(count)?)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

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

    /// How many sessions the store has on this database.
    pub(in crate::bench) async fn sessions_of_the_store(&self) -> anyhow::Result<i64> {
        let sessions = sqlx::query_scalar(
            "-- proof::bench::database::sessions_of_the_store
            SELECT count(*) FROM pg_stat_activity
            WHERE application_name = 'fencepost' AND datname = current_database()",
        );
        Ok(sessions.fetch_one(&self.pool).await?)
    }

    /// Waits until no more than so many are left.
    pub(in crate::bench) async fn wait_for_sessions_of_the_store(
        &self,
        left: i64,
    ) -> anyhow::Result<()> {
        let until = Instant::now() + SESSIONS_END;
        while self.sessions_of_the_store().await? > left {
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
