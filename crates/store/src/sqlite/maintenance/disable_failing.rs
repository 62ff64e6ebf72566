//! Disables endpoints that have been failing for too long.

use domain::endpoint::{DisabledCause, Failing};
use domain::id::EndpointKey;
use uuid::Uuid;

use crate::StoreError;
use crate::sqlite::codec::UnixMicros;
use crate::sqlite::endpoint::disable::disable_in_tx;
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};

pub(super) async fn disable_failing(
    writer: &Writer,
    limit: u32,
) -> Result<Vec<EndpointKey>, StoreError> {
    writer
        .run("maintenance::disable_failing", move |tx| {
            Box::pin(async move {
                let mut disabled = Vec::new();
                for (endpoint, version, failing) in read_failing(tx).await? {
                    if disabled.len() >= limit as usize {
                        break;
                    }
                    if failing.is_over(tx.now())
                        && disable_in_tx(tx, endpoint, version, DisabledCause::Failing).await?
                    {
                        disabled.push(endpoint);
                    }
                }
                Ok(disabled)
            })
        })
        .await
}

/// Those that are enabled and fail, with their versions.
async fn read_failing(
    tx: &mut WriteTransaction,
) -> Result<Vec<(EndpointKey, i64, Failing)>, Fault> {
    let rows: Vec<(Uuid, i64, UnixMicros, UnixMicros)> = sqlx::query_as(
        "-- sqlite::maintenance::disable_failing::read_failing
        SELECT s.endpoint, e.version, s.failing_since, s.failed_at
        FROM endpoint_schedule s
        JOIN endpoints e ON e.key = s.endpoint
        WHERE s.enabled AND NOT s.deleted AND s.failing_since IS NOT NULL
        ORDER BY s.endpoint",
    )
    .fetch_all(tx.connection())
    .await?;
    let failing = rows.into_iter().map(|(endpoint, version, since, last)| {
        (EndpointKey::from_uuid(endpoint), version, Failing { since: since.0, last: last.0 })
    });
    Ok(failing.collect())
}
