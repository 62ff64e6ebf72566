//! Endpoints whose count of slots is not the number of their deliveries in state processing, in one
//! snapshot.

use domain::health::SlotsOutOfStep;
use domain::id::EndpointKey;

use crate::StoreError;
use crate::doctor::ENDPOINTS_TOLD;
use crate::postgres::errors::store_error;
use crate::postgres::pool::Pool;

pub(super) async fn slots(pool: &Pool) -> Result<Vec<SlotsOutOfStep>, StoreError> {
    sqlx::query!(
        r#"-- postgres::doctor::slots
        SELECT s.endpoint, s.in_flight::bigint AS "counted!", h.held AS "held!"
        FROM fencepost.endpoint_schedule s
        CROSS JOIN LATERAL (
            SELECT count(*) AS held FROM fencepost.deliveries d
            WHERE d.endpoint = s.endpoint AND d.state = 2
        ) h
        WHERE s.in_flight <> h.held
        ORDER BY s.endpoint
        LIMIT $1"#,
        ENDPOINTS_TOLD,
    )
    .map(|row| SlotsOutOfStep {
        endpoint: EndpointKey::from_uuid(row.endpoint),
        counted: row.counted,
        held: row.held,
    })
    .fetch_all(pool)
    .await
    .map_err(|error| store_error("doctor::slots", error))
}
