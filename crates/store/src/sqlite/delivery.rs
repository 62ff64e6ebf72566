//! Deliveries: a row is read, the domain decides what an event makes of it, and that is written.
//!
//! The write lock is held all the while, so the row that is written over is the row that was read.

pub(super) mod cancel;
pub(super) mod claim_due;
pub(super) mod find;
pub(super) mod find_due_endpoints;
pub(super) mod give_back;
pub(super) mod list;
pub(super) mod list_attempts;
pub(super) mod read_backlog;
pub(super) mod record_attempts;
pub(super) mod replay_failed;

use domain::delivery::{Delivery, DeliveryState, FailureReason, Lapses, StateName};
use domain::id::{ClaimToken, DeliveryId, EndpointKey, SubmissionId};
use domain::operational::What;
use sqlx::FromRow;
use time::OffsetDateTime;
use uuid::Uuid;

use super::codec::{UnixMicros, corrupt};
use super::errors::Fault;
use super::operational::tell;
use super::writer::WriteTransaction;
use crate::{StoreError, codes};

/// A row of `deliveries`.
#[derive(Debug, FromRow)]
pub(super) struct DeliveryRow {
    endpoint: Uuid,
    id: Uuid,
    submission: Uuid,
    claim_token: Option<Uuid>,
    due_at: UnixMicros,
    claim_expires_at: Option<UnixMicros>,
    lapse_since: Option<UnixMicros>,
    cancel_requested_at: Option<UnixMicros>,
    attempts: u32,
    cycle_attempts: u32,
    lapses: u32,
    payload_bytes: u32,
    state: i16,
    reason: Option<i16>,
    claimed_by: Option<String>,
}

impl DeliveryRow {
    /// What the row says. A combination of columns that no statement of ours writes is an error.
    pub(super) fn delivery(&self) -> Result<Delivery, StoreError> {
        let bad = |column| corrupt("deliveries", column, self.id);
        let due_at = self.due_at.0;
        let claim = self.claim_token.map(ClaimToken::from_uuid);
        let lapses = self.lapses()?;
        let reason = self
            .reason
            .map(|code| codes::failure_reason(code).ok_or_else(|| bad("reason")))
            .transpose()?;
        let state = match (codes::state(self.state), claim, self.claim_expires_at, reason) {
            (Some(StateName::Pending), claim, _, None) => {
                DeliveryState::Pending { due_at, lapses, claim }
            }
            (Some(StateName::Processing), Some(claim), Some(expires_at), None) => {
                DeliveryState::Processing {
                    claim,
                    claim_expires_at: expires_at.0,
                    lapses,
                    cancel_requested: self.cancel_requested_at.is_some(),
                }
            }
            (Some(StateName::Failed), claim, _, Some(reason)) => {
                DeliveryState::Failed { reason, expires_at: due_at, claim }
            }
            (Some(StateName::Pending | StateName::Processing), _, _, Some(_))
            | (Some(StateName::Failed), _, _, None) => return Err(bad("reason")),
            (Some(StateName::Processing), None, _, None) => return Err(bad("claim_token")),
            (Some(StateName::Processing), Some(_), None, None) => {
                return Err(bad("claim_expires_at"));
            }
            (Some(StateName::Delivered | StateName::Cancelled | StateName::Expired) | None, ..) => {
                return Err(bad("state"));
            }
        };
        Ok(Delivery { attempts: self.attempts, cycle_attempts: self.cycle_attempts, state })
    }

    fn lapses(&self) -> Result<Option<Lapses>, StoreError> {
        match (self.lapses, self.lapse_since) {
            (0, None) => Ok(None),
            (1.., Some(since)) => Ok(Some(Lapses { count: self.lapses, since: since.0 })),
            (0, Some(_)) | (1.., None) => Err(corrupt("deliveries", "lapse_since", self.id)),
        }
    }
}

pub(super) async fn read_row(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    delivery: DeliveryId,
) -> Result<Option<DeliveryRow>, Fault> {
    let row = sqlx::query_as(
        "-- sqlite::delivery::read_row
        SELECT endpoint, id, submission, claim_token, due_at, claim_expires_at, lapse_since,
            cancel_requested_at, attempts, cycle_attempts, lapses, payload_bytes, state, reason,
            claimed_by
        FROM deliveries
        WHERE endpoint = ?1 AND id = ?2",
    )
    .bind(endpoint.as_uuid())
    .bind(delivery.as_uuid())
    .fetch_optional(tx.connection())
    .await?;
    Ok(row)
}

/// Writes what an event made of a row.
pub(super) async fn write_row(
    tx: &mut WriteTransaction,
    row: &DeliveryRow,
    next: &Delivery,
) -> Result<(), Fault> {
    let owed = match next.state {
        DeliveryState::Pending { due_at, lapses, claim } => {
            Owed { due_at, claim, claim_expires_at: None, lapses, reason: None }
        }
        DeliveryState::Processing { claim, claim_expires_at, lapses, .. } => Owed {
            // When it was due stays: a claim that is given back undoes nothing.
            due_at: row.due_at.0,
            claim: Some(claim),
            claim_expires_at: Some(claim_expires_at),
            lapses,
            reason: None,
        },
        DeliveryState::Failed { reason, expires_at, claim } => Owed {
            due_at: expires_at,
            claim,
            claim_expires_at: None,
            // Abandoned: the lapses that led there stay to be seen. A report has ended them.
            lapses: row.lapses()?.filter(|_| claim.is_some()),
            reason: Some(reason),
        },
        DeliveryState::Delivered => return settle(tx, row, next, None).await,
        DeliveryState::Cancelled { reason } => {
            return settle(tx, row, next, Some(codes::of_cancel_reason(reason))).await;
        }
        DeliveryState::Expired { reason } => {
            return settle(tx, row, next, Some(codes::of_failure_reason(reason))).await;
        }
    };
    update(tx, row, next, owed).await
}

/// The columns of a delivery that is owed or can be replayed, as far as they depend on its state.
struct Owed {
    due_at: OffsetDateTime,
    claim: Option<ClaimToken>,
    claim_expires_at: Option<OffsetDateTime>,
    lapses: Option<Lapses>,
    reason: Option<FailureReason>,
}

async fn update(
    tx: &mut WriteTransaction,
    row: &DeliveryRow,
    next: &Delivery,
    owed: Owed,
) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::delivery::update
        UPDATE deliveries
        SET state = ?3, due_at = ?4, claim_token = ?5, claim_expires_at = ?6, lapses = ?7,
            lapse_since = ?8, reason = ?9, attempts = ?10, cycle_attempts = ?11, claimed_by = ?12
        WHERE endpoint = ?1 AND id = ?2",
    )
    .bind(row.endpoint)
    .bind(row.id)
    .bind(codes::of_state(next.state.name()))
    .bind(UnixMicros(owed.due_at))
    .bind(owed.claim.map(ClaimToken::as_uuid))
    .bind(owed.claim_expires_at.map(UnixMicros))
    .bind(owed.lapses.map_or(0, |lapses| lapses.count))
    .bind(owed.lapses.map(|lapses| UnixMicros(lapses.since)))
    .bind(owed.reason.map(codes::of_failure_reason))
    .bind(next.attempts)
    .bind(next.cycle_attempts)
    .bind(row.claimed_by.as_deref())
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Tells of a delivery that has just failed for good; of another it does not.
pub(super) async fn tell_failure(
    tx: &mut WriteTransaction,
    row: &DeliveryRow,
    next: &Delivery,
) -> Result<(), Fault> {
    let DeliveryState::Failed { reason, .. } = next.state else { return Ok(()) };
    let failed = What::DeliveryFailed {
        delivery: DeliveryId::from_uuid(row.id),
        submission: SubmissionId::from_uuid(row.submission),
        reason,
    };
    tell(tx, EndpointKey::from_uuid(row.endpoint), failed).await
}

/// Moves the row to `settled_deliveries`.
async fn settle(
    tx: &mut WriteTransaction,
    row: &DeliveryRow,
    next: &Delivery,
    reason: Option<i16>,
) -> Result<(), Fault> {
    sqlx::query(
        "-- sqlite::delivery::settle::insert
        INSERT INTO settled_deliveries (endpoint, id, submission, settled_at, attempts,
            cycle_attempts, payload_bytes, state, reason, claimed_by)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )
    .bind(row.endpoint)
    .bind(row.id)
    .bind(row.submission)
    .bind(UnixMicros(tx.now()))
    .bind(next.attempts)
    .bind(next.cycle_attempts)
    .bind(row.payload_bytes)
    .bind(codes::of_state(next.state.name()))
    .bind(reason)
    .bind(row.claimed_by.as_deref())
    .execute(tx.connection())
    .await?;
    sqlx::query(
        "-- sqlite::delivery::settle::delete
        DELETE FROM deliveries WHERE endpoint = ?1 AND id = ?2",
    )
    .bind(row.endpoint)
    .bind(row.id)
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Counts slots that were taken, or freed if `by` is negative. An endpoint without a schedule row
/// has none to count.
pub(super) async fn move_in_flight(
    tx: &mut WriteTransaction,
    endpoint: EndpointKey,
    by: i64,
) -> Result<(), Fault> {
    if by == 0 {
        return Ok(());
    }
    sqlx::query(
        "-- sqlite::delivery::move_in_flight
        UPDATE endpoint_schedule SET in_flight = in_flight + ?2 WHERE endpoint = ?1",
    )
    .bind(endpoint.as_uuid())
    .bind(by)
    .execute(tx.connection())
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> DeliveryRow {
        DeliveryRow {
            endpoint: Uuid::from_u128(1),
            id: Uuid::from_u128(2),
            submission: Uuid::from_u128(3),
            claim_token: None,
            due_at: UnixMicros(OffsetDateTime::UNIX_EPOCH),
            claim_expires_at: None,
            lapse_since: None,
            cancel_requested_at: None,
            attempts: 0,
            cycle_attempts: 0,
            lapses: 0,
            payload_bytes: 0,
            state: 1,
            reason: None,
            claimed_by: None,
        }
    }

    fn refused(change: impl FnOnce(&mut DeliveryRow)) -> &'static str {
        let mut row = row();
        change(&mut row);
        match row.delivery() {
            Err(StoreError::Corrupt { table: "deliveries", column, row: id }) => {
                assert_eq!(id, row.id.to_string());
                column
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_accepted_row_is_a_pending_delivery() {
        let accepted = Delivery::accepted(OffsetDateTime::UNIX_EPOCH);
        assert_eq!(row().delivery().unwrap(), accepted);
    }

    #[test]
    fn an_impossible_mix_of_columns_is_named() {
        let at = UnixMicros(OffsetDateTime::UNIX_EPOCH);
        assert_eq!(refused(|row| row.state = 0), "state");
        assert_eq!(refused(|row| row.state = 4), "state");
        assert_eq!(refused(|row| row.reason = Some(1)), "reason");
        assert_eq!(refused(|row| row.state = 3), "reason");
        assert_eq!(refused(|row| (row.state, row.reason) = (3, Some(21))), "reason");
        assert_eq!(refused(|row| row.state = 2), "claim_token");
        let token = Some(Uuid::from_u128(4));
        assert_eq!(refused(|row| (row.state, row.claim_token) = (2, token)), "claim_expires_at");
        assert_eq!(refused(|row| row.lapses = 1), "lapse_since");
        assert_eq!(refused(|row| row.lapse_since = Some(at)), "lapse_since");
    }
}
