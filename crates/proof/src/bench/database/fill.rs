//! A backlog and a history, made in the database: what millions of submissions would have left, in
//! minutes.

use domain::id::EndpointKey;
use time::OffsetDateTime;
use uuid::Uuid;

use super::Database;

/// How many rows one statement makes: whoever waits sees it go on, and no transaction is long.
const ROWS_MAX: u64 = 250_000;

/// Who is told how many rows there are by now.
pub(in crate::bench) type Told<'a> = &'a (dyn Fn(u64) + Sync);

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
    /// Adds a backlog as if 10,000 a second had come: each delivery is due 100 µs after the one before it,
    /// the last one now.
    pub(in crate::bench) async fn fill(&self, backlog: Backlog<'_>) -> anyhow::Result<()> {
        self.fill_telling(backlog, &|_| {}).await
    }

    pub(in crate::bench) async fn fill_telling(
        &self,
        backlog: Backlog<'_>,
        told: Told<'_>,
    ) -> anyhow::Result<()> {
        let endpoints = uuids(backlog.endpoints);
        let now = self.now().await?;
        for (from, to) in parts(backlog.count) {
            sqlx::query(
                "-- proof::bench::database::fill
                WITH m AS MATERIALIZED (
                    SELECT ($1::uuid[])[1 + n % cardinality($1::uuid[])] AS endpoint,
                        $5::timestamptz - ($4 - n) * interval '100 microseconds' AS due_at
                    FROM generate_series($2, $3) AS n
                ), n AS MATERIALIZED (
                    SELECT endpoint, due_at,
                        (lpad(to_hex((extract(epoch FROM due_at) * 1000)::bigint), 12, '0')
                            || '7' || substr(md5(random()::text), 1, 3) || '8'
                            || substr(md5(random()::text), 1, 15))::uuid AS id
                    FROM m
                ), s AS (
                    INSERT INTO fencepost.submissions (endpoint, id, webhook_id, received_at,
                        payload_bytes, deliveries, content_type, payload)
                    SELECT endpoint, id, id, due_at, length($6), ARRAY[id], 'application/json', $6
                    FROM n
                )
                INSERT INTO fencepost.deliveries
                    (endpoint, id, submission, due_at, payload_bytes, state)
                SELECT endpoint, id, id, due_at, length($6), 1 FROM n",
            )
            .bind(&endpoints)
            .bind(from)
            .bind(to)
            .bind(i64::try_from(backlog.count)?)
            .bind(now)
            .bind(backlog.payload)
            .execute(&self.pool)
            .await?;
            told(u64::try_from(to)?);
        }
        // The statistics that autovacuum would have made by the time a backlog grew so long.
        sqlx::query("ANALYZE fencepost.deliveries, fencepost.submissions")
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Adds deliveries that were settled today with one attempt each.
    pub(in crate::bench) async fn fill_history(
        &self,
        endpoints: &[EndpointKey],
        count: u64,
        told: Told<'_>,
    ) -> anyhow::Result<()> {
        let endpoints = uuids(endpoints);
        for (from, to) in parts(count) {
            sqlx::query(
                "-- proof::bench::database::fill_history
                WITH n AS MATERIALIZED (
                    SELECT ($1::uuid[])[1 + n % cardinality($1::uuid[])] AS endpoint,
                        (lpad(to_hex((extract(epoch FROM statement_timestamp()) * 1000)::bigint), 12,
                            '0') || '7' || substr(md5(random()::text), 1, 3) || '8'
                            || substr(md5(random()::text), 1, 15))::uuid AS id
                    FROM generate_series($2, $3) AS n
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
            .bind(&endpoints)
            .bind(from)
            .bind(to)
            .execute(&self.pool)
            .await?;
            told(u64::try_from(to)?);
        }
        Ok(())
    }

    async fn now(&self) -> anyhow::Result<OffsetDateTime> {
        let now =
            sqlx::query_scalar("-- proof::bench::database::now\nSELECT statement_timestamp()");
        Ok(now.fetch_one(&self.pool).await?)
    }
}

fn uuids(endpoints: &[EndpointKey]) -> Vec<Uuid> {
    endpoints.iter().map(|key| key.as_uuid()).collect()
}

/// The first and the last row of each statement, counted from one.
fn parts(count: u64) -> impl Iterator<Item = (i64, i64)> {
    let ends = (0..count).step_by(usize::try_from(ROWS_MAX).unwrap_or(usize::MAX));
    ends.filter_map(move |before| {
        let to = (before + ROWS_MAX).min(count);
        Some((i64::try_from(before + 1).ok()?, i64::try_from(to).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_make_every_row_once() {
        let parts = |count| parts(count).collect::<Vec<_>>();
        assert_eq!(parts(0), []);
        assert_eq!(parts(7), [(1, 7)]);
        assert_eq!(parts(500_001), [(1, 250_000), (250_001, 500_000), (500_001, 500_001)]);
    }
}
