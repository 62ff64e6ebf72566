//! The yardstick of latency: one row, one statement, one durable commit.

use sqlx::Executor as _;

use super::Database;

impl Database {
    pub(in crate::bench) async fn prepare_single_commits(&self) -> anyhow::Result<()> {
        // In the schema that is ours: it goes with it.
        self.pool.execute("CREATE TABLE IF NOT EXISTS fencepost.bench_commits (id uuid)").await?;
        Ok(())
    }

    pub(in crate::bench) async fn commit_one(&self) -> anyhow::Result<()> {
        sqlx::query(
            "-- proof::bench::database::committing
            INSERT INTO fencepost.bench_commits (id) VALUES ($1)",
        )
        .bind(store::new_id::uuid_now())
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}
