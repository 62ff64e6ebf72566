//! The limit of ingest: the database alone, writing the rows of submissions a hundred in a statement.

use std::time::{Duration, Instant};

use domain::id::EndpointKey;
use sqlx::PgPool;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Database, ROWS, SESSIONS};
use crate::bench::arithmetic::per_second;
use crate::bench::payloads::Payloads;

impl Database {
    /// How many submissions a second the database takes from four sessions, with nobody before it.
    pub(in crate::bench) async fn accepting(
        &self,
        endpoints: &[EndpointKey],
        payloads: &Payloads,
        duration: Duration,
    ) -> anyhow::Result<f64> {
        let endpoints: Vec<Uuid> = endpoints.iter().map(|key| key.as_uuid()).collect();
        let until = Instant::now() + duration;
        let mut sessions = JoinSet::new();
        for session in 0..u64::from(SESSIONS) {
            let (pool, endpoints, payloads) =
                (self.pool.clone(), endpoints.clone(), payloads.clone());
            sessions.spawn(async move {
                let mut written = 0;
                while Instant::now() < until {
                    written += write(&pool, &endpoints, &payloads, session + written).await?;
                }
                anyhow::Ok(written)
            });
        }
        let began = Instant::now();
        let mut written = 0;
        while let Some(ended) = sessions.join_next().await {
            written += ended??;
        }
        Ok(per_second(written, began.elapsed()))
    }
}

async fn write(
    pool: &PgPool,
    endpoints: &[Uuid],
    payloads: &Payloads,
    first: u64,
) -> anyhow::Result<u64> {
    let rows = u64::try_from(ROWS)?;
    let ids: Vec<Uuid> = (0..ROWS).map(|_| store::new_id::uuid_now()).collect();
    let turn = usize::try_from(first)?;
    let owners: Vec<Uuid> = endpoints.iter().cycle().skip(turn % 97).take(ROWS).copied().collect();
    let keys: Vec<String> = ids.iter().map(|id| id.simple().to_string()).collect();
    let bodies = (first..first + rows).map(|number| payloads.of(number).to_vec());
    let bodies: Vec<Vec<u8>> = bodies.collect();
    sqlx::query(
        "-- proof::bench::database::accepting
        WITH r AS MATERIALIZED (
            SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::bytea[])
                AS r(endpoint, id, key, payload)
        ), k AS (
            INSERT INTO fencepost.idempotency_keys
                (scope, key, fingerprint, submission, deliveries, received_at, expires_at)
            SELECT endpoint, key, decode(md5(key), 'hex') || decode(md5(key), 'hex'), id, ARRAY[id],
                now(), now() + interval '30 days'
            FROM r
        ), s AS (
            INSERT INTO fencepost.submissions (endpoint, id, webhook_id, received_at,
                payload_bytes, deliveries, content_type, payload)
            SELECT endpoint, id, id, now(), length(payload), ARRAY[id], 'application/json', payload
            FROM r
        )
        INSERT INTO fencepost.deliveries (endpoint, id, submission, due_at, payload_bytes, state)
        SELECT endpoint, id, id, now(), length(payload), 1 FROM r",
    )
    .bind(owners)
    .bind(ids)
    .bind(keys)
    .bind(bodies)
    .execute(pool)
    .await?;
    Ok(rows)
}
