//! Why a delivery was not replayed.

use domain::delivery::{CancelReason, StateName};
use domain::id::{ApplicationKey, DeliveryId};
use sqlx::FromRow;

use crate::codes;
use crate::delivery::Replay;
use crate::sqlite::codec::{UnixMicros, corrupt};
use crate::sqlite::errors::Fault;
use crate::sqlite::writer::WriteTransaction;

#[derive(FromRow)]
struct Row {
    state: i16,
    reason: Option<i16>,
    /// Whether its endpoint takes deliveries.
    open: bool,
    /// Whether the time in which it could be replayed is over.
    over: bool,
    /// Whether its submission is still there.
    kept: bool,
    /// When its payload was erased.
    erased_at: Option<UnixMicros>,
}

pub(super) async fn explain(
    tx: &mut WriteTransaction,
    application: ApplicationKey,
    delivery: DeliveryId,
) -> Result<Replay, Fault> {
    let row: Option<Row> = sqlx::query_as(
        "-- sqlite::delivery::replay_failed::explain
        SELECT q.state, q.reason, s.enabled AND NOT s.deleted AS open, q.over,
            p.id IS NOT NULL AS kept, p.erased_at
        FROM (
            SELECT d.endpoint, d.submission, d.state, d.reason, d.due_at <= ?3 AS over
            FROM deliveries d WHERE d.id = ?2
            UNION ALL
            SELECT d.endpoint, d.submission, d.state, d.reason, 1
            FROM settled_deliveries d WHERE d.id = ?2
        ) q
        JOIN endpoints e ON e.key = q.endpoint AND e.application = ?1
        JOIN endpoint_schedule s ON s.endpoint = q.endpoint
        LEFT JOIN submissions p ON p.endpoint = q.endpoint AND p.id = q.submission",
    )
    .bind(application.as_uuid())
    .bind(delivery.as_uuid())
    .bind(UnixMicros(tx.now()))
    .fetch_optional(tx.connection())
    .await?;
    let Some(row) = row else { return Ok(Replay::Missing) };
    let state = codes::state(row.state).ok_or_else(|| corrupt("deliveries", "state", delivery))?;
    let cancelled_because = row.reason.and_then(codes::cancel_reason);
    Ok(match state {
        StateName::Cancelled if cancelled_because == Some(CancelReason::PayloadErased) => {
            Replay::PayloadErased
        }
        StateName::Expired => Replay::Expired,
        StateName::Failed if row.over => Replay::Expired,
        StateName::Failed if !row.kept => Replay::PayloadExpired,
        StateName::Failed if row.erased_at.is_some() => Replay::PayloadErased,
        StateName::Failed if !row.open => Replay::EndpointDisabled,
        other => Replay::NotReplayable(other),
    })
}
