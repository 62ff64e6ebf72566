//! How some endpoints do.

use domain::endpoint::Failing;
use domain::id::EndpointKey;
use sqlx::{FromRow, SqlitePool};

use crate::StoreError;
use crate::life::Life;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::errors::store_error;
use crate::sqlite::life::CircuitColumns;

pub(super) async fn read_lives(
    readers: &SqlitePool,
    endpoints: &[EndpointKey],
) -> Result<Vec<Life>, StoreError> {
    let mut lives = Vec::with_capacity(endpoints.len());
    for endpoint in endpoints {
        let row = read_one(readers, *endpoint).await;
        let row = row.map_err(|error| store_error("life::read_lives", error))?;
        lives.push(row.map(|row| row.life(*endpoint)).transpose()?.unwrap_or_default());
    }
    Ok(lives)
}

#[derive(FromRow)]
struct LifeRow {
    disabled_at: Option<UnixMicros>,
    failing_since: Option<UnixMicros>,
    failed_at: Option<UnixMicros>,
    #[sqlx(flatten)]
    circuit: CircuitColumns,
    now: UnixMicros,
}

impl LifeRow {
    fn life(self, endpoint: EndpointKey) -> Result<Life, StoreError> {
        let run = self.failing_since.zip(self.failed_at);
        let failing = run.map(|(since, last)| Failing { since: since.0, last: last.0 });
        let life = Life {
            disabled_at: self.disabled_at.map(|at| at.0),
            failing,
            circuit: self.circuit.circuit(endpoint)?,
            half_open: false,
        };
        Ok(life.as_of(self.now.0))
    }
}

async fn read_one(
    readers: &SqlitePool,
    endpoint: EndpointKey,
) -> Result<Option<LifeRow>, sqlx::Error> {
    sqlx::query_as(
        "-- sqlite::life::read_lives::read_one
        SELECT e.disabled_at, s.failing_since, s.failed_at, s.failures_in_a_row, s.window_since,
            s.window_succeeded, s.window_failed, s.circuit_times, s.circuit_since, s.circuit_until,
            s.circuit_cause, s.circuit_probe,
            CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now
        FROM endpoints e
        JOIN endpoint_schedule s ON s.endpoint = e.key
        WHERE e.key = ?1",
    )
    .bind(endpoint.as_uuid())
    .fetch_optional(readers)
    .await
}
