//! A backlog, made in the database: what thousands of submissions would have left, in seconds.

use domain::id::EndpointKey;
use uuid::Uuid;

use super::Database;

/// Deliveries that are due.
#[derive(Debug, Clone, Copy)]
pub(in crate::bench) struct Backlog<'a> {
    /// Whose they are, in turn.
    pub(in crate::bench) endpoints: &'a [EndpointKey],
    pub(in crate::bench) count: u64,
    /// What each carries.
    pub(in crate::bench) payload: &'a [u8],
}

impl Database {
    /// Adds a backlog. Each delivery is due a microsecond after the one before it, the last one now.
    pub(in crate::bench) async fn fill(&self, backlog: Backlog<'_>) -> anyhow::Result<()> {
        let endpoints: Vec<Uuid> = backlog.endpoints.iter().map(|key| key.as_uuid()).collect();
        sqlx::query(
            "-- proof::bench::database::fill
            WITH n AS MATERIALIZED (
                SELECT n, ($1::uuid[])[1 + n % cardinality($1::uuid[])] AS endpoint,
                    statement_timestamp() - ($2 - n) * interval '1 microsecond' AS due_at,
                    (lpad(to_hex((extract(epoch FROM statement_timestamp()) * 1000)::bigint), 12,
                        '0') || '7' || substr(md5(random()::text), 1, 3) || '8'
                        || substr(md5(random()::text), 1, 15))::uuid AS id
                FROM generate_series(1, $2) AS n
            ), s AS (
                INSERT INTO fencepost.submissions (endpoint, id, webhook_id, received_at,
                    payload_bytes, deliveries, content_type, payload)
                SELECT endpoint, id, id, due_at, length($3), ARRAY[id], 'application/json', $3
                FROM n
            )
            INSERT INTO fencepost.deliveries
                (endpoint, id, submission, due_at, payload_bytes, state)
            SELECT endpoint, id, id, due_at, length($3), 1 FROM n",
        )
        .bind(endpoints)
        .bind(i64::try_from(backlog.count)?)
        .bind(backlog.payload)
        .execute(&self.pool)
        .await?;
        // The statistics that autovacuum would have made by the time a backlog grew so long.
        sqlx::query("ANALYZE fencepost.deliveries, fencepost.submissions")
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}
