//! The limit of delivery: the database alone, claiming and recording a hundred in a statement.
//!
//! No caps, no fairness, no fence and no numbers: two statements that move as many rows.

use std::time::{Duration, Instant};

use domain::id::EndpointKey;
use sqlx::PgPool;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Database, ROWS, SESSIONS};
use crate::bench::arithmetic::per_second;

impl Database {
    /// How many deliveries a second four sessions claim and record, each of endpoints of its own, until
    /// that time is over or nothing is left.
    pub(in crate::bench) async fn delivering(
        &self,
        endpoints: &[EndpointKey],
        duration: Duration,
    ) -> anyhow::Result<f64> {
        let until = Instant::now() + duration;
        let mut sessions = JoinSet::new();
        for session in 0..usize::try_from(SESSIONS)? {
            let pool = self.pool.clone();
            let own = endpoints.iter().skip(session).step_by(usize::try_from(SESSIONS)?);
            let own: Vec<Uuid> = own.map(|key| key.as_uuid()).collect();
            sessions.spawn(async move {
                let mut moved = 0;
                for endpoint in own {
                    while Instant::now() < until {
                        let claimed = claim(&pool, endpoint).await?;
                        if claimed.is_empty() {
                            break;
                        }
                        moved += record(&pool, endpoint, &claimed).await?;
                    }
                }
                anyhow::Ok(moved)
            });
        }
        let began = Instant::now();
        let mut moved = 0;
        while let Some(ended) = sessions.join_next().await {
            moved += ended??;
        }
        Ok(per_second(moved, began.elapsed()))
    }
}

async fn claim(pool: &PgPool, endpoint: Uuid) -> anyhow::Result<Vec<Uuid>> {
    let claimed = sqlx::query_as(
        "-- proof::bench::database::delivering::claim
        WITH c AS MATERIALIZED (
            SELECT id FROM fencepost.deliveries
            WHERE endpoint = $3 AND state = 1 AND due_at <= now()
            ORDER BY due_at, id LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
        ), u AS (
            UPDATE fencepost.deliveries SET state = 2, claim_token = $2, claimed_by = 'bench',
                claim_expires_at = now() + interval '1 minute'
            WHERE endpoint = $3 AND id = ANY(ARRAY(SELECT id FROM c))
            RETURNING endpoint, id, submission
        )
        SELECT u.id, s.payload
        FROM u JOIN fencepost.submissions s ON s.endpoint = u.endpoint AND s.id = u.submission
        WHERE s.payload IS NOT NULL",
    )
    .bind(i64::try_from(ROWS)?)
    .bind(store::new_id::uuid_now())
    .bind(endpoint)
    .fetch_all(pool);
    let claimed: Vec<(Uuid, Vec<u8>)> = claimed.await?;
    Ok(claimed.into_iter().map(|(id, _)| id).collect())
}

async fn record(pool: &PgPool, endpoint: Uuid, claimed: &[Uuid]) -> anyhow::Result<u64> {
    let recorded = sqlx::query(
        "-- proof::bench::database::delivering::record
        WITH d AS (
            DELETE FROM fencepost.deliveries WHERE endpoint = $2 AND id = ANY($1) RETURNING *
        ), s AS (
            INSERT INTO fencepost.settled_deliveries (endpoint, id, submission, settled_at,
                attempts, cycle_attempts, payload_bytes, state, claimed_by)
            SELECT endpoint, id, submission, now(), 1, 1, payload_bytes, 4, claimed_by FROM d
        )
        INSERT INTO fencepost.attempts (endpoint, delivery, claim_token, started_at, recorded_at,
            number, duration_ms, outcome, status, late, response_truncated, worker, url, response)
        SELECT endpoint, id, claim_token, now(), now(), 1, 1, 1, 204, false, false, claimed_by,
            'http://127.0.0.1:12345/after/0', '' FROM d",
    )
    .bind(claimed)
    .bind(endpoint)
    .execute(pool);
    Ok(recorded.await?.rows_affected())
}
