//! Cancels a delivery that is owed or replayable, and marks one that a worker has.

use domain::delivery::{CancelReason, DeliveryState};
use domain::id::{ApplicationKey, DeliveryId, EndpointKey};
use sqlx::FromRow;
use uuid::Uuid;

use super::{DeliveryRow, read_row, write_row};
use crate::delivery::Cancellation;
use crate::sqlite::codec::{UnixMicros, corrupt};
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::{WriteTransaction, Writer};
use crate::{StoreError, codes};

pub(in crate::sqlite) async fn cancel(
    writer: &Writer,
    application: ApplicationKey,
    delivery: DeliveryId,
) -> Result<Cancellation, StoreError> {
    writer
        .run("delivery::cancel", move |tx| Box::pin(cancel_in_tx(tx, application, delivery)))
        .await
}

async fn cancel_in_tx(
    tx: &mut WriteTransaction,
    application: ApplicationKey,
    delivery: DeliveryId,
) -> Result<Cancellation, Fault> {
    let Some(found) = find(tx, application, delivery).await? else {
        return Ok(Cancellation::Missing);
    };
    let endpoint = EndpointKey::from_uuid(found.endpoint);
    let Some(row) = read_row(tx, endpoint, delivery).await? else {
        let state = codes::state(found.state)
            .ok_or_else(|| corrupt("settled_deliveries", "state", delivery))?;
        return Ok(Cancellation::NotCancellable(state));
    };
    cancel_row(tx, &row, CancelReason::Operator).await
}

/// Settles the row, or marks it if a worker has it.
pub(in crate::sqlite) async fn cancel_row(
    tx: &mut WriteTransaction,
    row: &DeliveryRow,
    why: CancelReason,
) -> Result<Cancellation, Fault> {
    let mut delivery = row.delivery()?;
    if let Err(refused) = delivery.cancel(why) {
        return Ok(Cancellation::NotCancellable(refused.0));
    }
    if let DeliveryState::Processing { .. } = delivery.state {
        mark(tx, row).await?;
        return Ok(Cancellation::Requested);
    }
    write_row(tx, row, &delivery).await?;
    Ok(Cancellation::Cancelled)
}

async fn mark(tx: &mut WriteTransaction, row: &DeliveryRow) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::delivery::cancel::mark
        UPDATE deliveries SET cancel_requested_at = COALESCE(cancel_requested_at, ?3)
        WHERE endpoint = ?1 AND id = ?2",
    )
    .bind(row.endpoint)
    .bind(row.id)
    .bind(UnixMicros(tx.now()))
    .execute(tx.connection())
    .await?;
    Ok(())
}

#[derive(FromRow)]
struct Found {
    endpoint: Uuid,
    state: i16,
}

async fn find(
    tx: &mut WriteTransaction,
    application: ApplicationKey,
    delivery: DeliveryId,
) -> Result<Option<Found>, Fault> {
    let found = sqlx::query_as(
        "-- sqlite::delivery::cancel::find
        SELECT q.endpoint, q.state
        FROM (
            SELECT d.endpoint, d.state FROM deliveries d WHERE d.id = ?2
            UNION ALL
            SELECT d.endpoint, d.state FROM settled_deliveries d WHERE d.id = ?2
        ) q
        JOIN endpoints e ON e.key = q.endpoint AND e.application = ?1",
    )
    .bind(application.as_uuid())
    .bind(delivery.as_uuid())
    .fetch_optional(tx.connection())
    .await?;
    Ok(found)
}
