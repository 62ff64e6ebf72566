//! Rows of PostgreSQL and what they mean.

mod endpoint;

use std::fmt::Display;
use std::time::Duration;

use domain::delivery::StateName;
use domain::id::{DeliveryId, EndpointKey, SubmissionId};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::delivery::DeliveryView;
use crate::submission::Submission;
use crate::{StoreError, codes};

pub(super) use endpoint::{EndpointRow, SettingsColumns, rate};

/// The error for a value that no statement of ours writes.
pub(super) fn corrupt(table: &'static str, column: &'static str, row: impl Display) -> StoreError {
    StoreError::Corrupt { table, column, row: row.to_string() }
}

/// A duration as the milliseconds of a `bigint` column.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A duration as the milliseconds of an `integer` column.
pub(super) fn millis_i32(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

/// A count or length that the table keeps as an `integer`.
pub(super) fn integer(count: impl TryInto<i32>) -> i32 {
    count.try_into().unwrap_or(i32::MAX)
}

/// A count or length of an `integer` column, which is never negative.
pub(super) fn count(column: i32) -> u32 {
    u32::try_from(column).unwrap_or(0)
}

fn duration(column: i64) -> Option<Duration> {
    u64::try_from(column).ok().map(Duration::from_millis)
}

pub(super) fn deliveries(ids: Vec<Uuid>) -> Vec<DeliveryId> {
    ids.into_iter().map(DeliveryId::from_uuid).collect()
}

/// The lowest and the highest id of one or of all, both of which a condition can always name: as
/// `$1 IS NULL OR …` it would be none of the index.
pub(super) fn bounds(only: Option<Uuid>) -> (Uuid, Uuid) {
    (only.unwrap_or(Uuid::nil()), only.unwrap_or(Uuid::max()))
}

/// The lowest and the highest of these ids. A statement that joins a partitioned table names them beside the
/// join: PostgreSQL leaves out partitions by what it is given before it begins, and sets up each of the
/// others, whether or not a row leads there.
pub(super) fn range(ids: &[Uuid]) -> (Uuid, Uuid) {
    let (lowest, highest) = (ids.iter().min(), ids.iter().max());
    (lowest.copied().unwrap_or(Uuid::max()), highest.copied().unwrap_or(Uuid::nil()))
}

/// A row of `submissions` with its endpoint's public id.
#[derive(Debug)]
pub(super) struct SubmissionRow {
    pub id: Uuid,
    pub webhook_id: Uuid,
    pub resend_of: Option<Uuid>,
    pub endpoint: Uuid,
    pub endpoint_id: String,
    pub deliveries: Vec<Uuid>,
    pub event_type: Option<String>,
    pub content_type: String,
    pub payload_bytes: i32,
    pub received_at: OffsetDateTime,
    pub erased_at: Option<OffsetDateTime>,
}

impl From<SubmissionRow> for Submission {
    fn from(row: SubmissionRow) -> Self {
        Self {
            id: SubmissionId::from_uuid(row.id),
            webhook_id: row.webhook_id,
            resend_of: row.resend_of.map(SubmissionId::from_uuid),
            endpoint: EndpointKey::from_uuid(row.endpoint),
            endpoint_id: row.endpoint_id,
            deliveries: deliveries(row.deliveries),
            event_type: row.event_type,
            content_type: row.content_type,
            payload_bytes: count(row.payload_bytes).into(),
            erased_at: row.erased_at,
            received_at: row.received_at,
        }
    }
}

/// A row of `deliveries` or of `settled_deliveries`, with its endpoint's public id.
#[derive(Debug)]
pub(super) struct DeliveryRow {
    pub id: Uuid,
    pub endpoint: Uuid,
    pub endpoint_id: String,
    pub submission: Uuid,
    pub state: i16,
    pub reason: Option<i16>,
    pub attempts: i32,
    pub cycle_attempts: i32,
    pub lapses: i32,
    pub due_at: Option<OffsetDateTime>,
    pub claim_expires_at: Option<OffsetDateTime>,
    pub claimed_by: Option<String>,
    pub cancel_requested: bool,
    pub settled_at: Option<OffsetDateTime>,
}

impl TryFrom<DeliveryRow> for DeliveryView {
    type Error = StoreError;

    fn try_from(row: DeliveryRow) -> Result<Self, StoreError> {
        let bad = |column| corrupt("deliveries", column, row.id);
        let state = codes::state(row.state).ok_or_else(|| bad("state"))?;
        let failure = row.reason.and_then(codes::failure_reason);
        let cancellation = row.reason.and_then(codes::cancel_reason);
        let only_in =
            |wanted: StateName, at: Option<OffsetDateTime>| at.filter(|_| state == wanted);
        let due_at = only_in(StateName::Pending, row.due_at);
        let claim_expires_at = only_in(StateName::Processing, row.claim_expires_at);
        let replayable_until = only_in(StateName::Failed, row.due_at);
        // Each state has just the facts that are true in it.
        match state {
            StateName::Pending if due_at.is_none() => return Err(bad("due_at")),
            StateName::Processing if claim_expires_at.is_none() => {
                return Err(bad("claim_expires_at"));
            }
            StateName::Failed | StateName::Expired if failure.is_none() => {
                return Err(bad("reason"));
            }
            StateName::Cancelled if cancellation.is_none() => return Err(bad("reason")),
            StateName::Delivered if row.reason.is_some() => return Err(bad("reason")),
            _ => {}
        }
        if state.is_settled() && row.settled_at.is_none() {
            return Err(bad("settled_at"));
        }
        Ok(Self {
            id: DeliveryId::from_uuid(row.id),
            endpoint: EndpointKey::from_uuid(row.endpoint),
            endpoint_id: row.endpoint_id,
            submission: SubmissionId::from_uuid(row.submission),
            state,
            failure,
            cancellation,
            attempts: count(row.attempts),
            cycle_attempts: count(row.cycle_attempts),
            lapses: count(row.lapses),
            due_at,
            claim_expires_at,
            claimed_by: row.claimed_by,
            cancel_requested: row.cancel_requested,
            replayable_until,
            settled_at: row.settled_at,
        })
    }
}
