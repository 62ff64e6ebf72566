//! Endpoints whose count of slots is not the number of their deliveries in state processing.

use domain::health::SlotsOutOfStep;
use domain::id::EndpointKey;
use sqlx::SqlitePool;
use uuid::Uuid;

use crate::StoreError;
use crate::doctor::ENDPOINTS_TOLD;
use crate::sqlite::errors::store_error;

pub(super) async fn slots(readers: &SqlitePool) -> Result<Vec<SlotsOutOfStep>, StoreError> {
    let rows: Vec<(Uuid, i64, i64)> = sqlx::query_as(
        "-- sqlite::doctor::slots
        SELECT s.endpoint, s.in_flight, (
            SELECT count(*) FROM deliveries d WHERE d.endpoint = s.endpoint AND d.state = 2
        ) AS taken
        FROM endpoint_schedule s
        WHERE s.in_flight <> taken
        ORDER BY s.endpoint
        LIMIT ?1",
    )
    .bind(ENDPOINTS_TOLD)
    .fetch_all(readers)
    .await
    .map_err(|error| store_error("doctor::slots", error))?;
    let told = |(endpoint, counted, held)| SlotsOutOfStep {
        endpoint: EndpointKey::from_uuid(endpoint),
        counted,
        held,
    };
    Ok(rows.into_iter().map(told).collect())
}
