//! How some endpoints do.

use std::collections::HashMap;

use domain::endpoint::Failing;
use domain::endpoint::circuit::{Circuit, Counts, Opening};
use domain::id::{ClaimToken, EndpointKey};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::life::Life;
use crate::postgres::codec::{corrupt, count};
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;
use crate::{StoreError, codes};

pub(super) async fn read_lives(
    pool: &Pool,
    endpoints: &[EndpointKey],
) -> Result<Vec<Life>, StoreError> {
    let keys: Vec<Uuid> = endpoints.iter().map(|endpoint| endpoint.as_uuid()).collect();
    let rows = sqlx::query_as!(
        LifeRow,
        r#"-- postgres::life::read_lives
        SELECT e.key, e.disabled_at, s.failing_since, s.failed_at, s.failures_in_a_row,
            s.window_since, s.window_succeeded, s.window_failed, s.circuit_times, s.circuit_since,
            s.circuit_until, s.circuit_cause, s.circuit_probe, statement_timestamp() AS "now!"
        FROM fencepost.endpoints e
        JOIN fencepost.endpoint_schedule s ON s.endpoint = e.key
        WHERE e.key = ANY($1::uuid[])"#,
        &keys,
    )
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("life::read_lives", error))?;
    let mut lives = HashMap::with_capacity(rows.len());
    for row in rows {
        lives.insert(row.key, row.life()?);
    }
    Ok(keys.iter().map(|key| lives.get(key).copied().unwrap_or_default()).collect())
}

struct LifeRow {
    key: Uuid,
    disabled_at: Option<OffsetDateTime>,
    failing_since: Option<OffsetDateTime>,
    failed_at: Option<OffsetDateTime>,
    failures_in_a_row: i32,
    window_since: Option<OffsetDateTime>,
    window_succeeded: i32,
    window_failed: i32,
    circuit_times: i32,
    circuit_since: Option<OffsetDateTime>,
    circuit_until: Option<OffsetDateTime>,
    circuit_cause: Option<i16>,
    circuit_probe: Option<Uuid>,
    now: OffsetDateTime,
}

impl LifeRow {
    fn life(&self) -> Result<Life, StoreError> {
        let run = self.failing_since.zip(self.failed_at);
        let failing = run.map(|(since, last)| Failing { since, last });
        let circuit = self.circuit()?;
        let life = Life { disabled_at: self.disabled_at, failing, circuit, half_open: false };
        Ok(life.as_of(self.now))
    }

    fn circuit(&self) -> Result<Circuit, StoreError> {
        let bad = |column| corrupt("endpoint_schedule", column, self.key);
        if self.circuit_times == 0 {
            return Ok(Circuit::Closed(Counts {
                in_a_row: count(self.failures_in_a_row),
                since: self.window_since,
                succeeded: count(self.window_succeeded),
                failed: count(self.window_failed),
            }));
        }
        let cause = self.circuit_cause.and_then(codes::open_cause);
        Ok(Circuit::Open(Opening {
            since: self.circuit_since.ok_or_else(|| bad("circuit_since"))?,
            until: self.circuit_until.ok_or_else(|| bad("circuit_until"))?,
            times: count(self.circuit_times),
            cause: cause.ok_or_else(|| bad("circuit_cause"))?,
            probe: self.circuit_probe.map(ClaimToken::from_uuid),
        }))
    }
}
