//! Rows of PostgreSQL and what they mean.

use std::fmt::Display;
use std::time::Duration;

use domain::delivery::StateName;
use domain::delivery::retry::RetrySchedule;
use domain::endpoint::{EndpointSettings, SettingsDraft};
use domain::id::{ApplicationKey, DeliveryId, EndpointKey, PublicId, SubmissionId};
use domain::rate_limit::RateLimit;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::delivery::DeliveryView;
use crate::endpoint::Endpoint;
use crate::submission::Submission;
use crate::{StoreError, codes};

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

/// A rate limit of two columns: units, and the window in milliseconds.
fn rate_limit(units: i32, window_ms: i64) -> Option<RateLimit> {
    RateLimit::new(u32::try_from(units).ok()?, duration(window_ms)?).ok()
}

pub(super) fn deliveries(ids: Vec<Uuid>) -> Vec<DeliveryId> {
    ids.into_iter().map(DeliveryId::from_uuid).collect()
}

/// The columns of `endpoints` that settings are made of.
#[derive(Debug)]
pub(super) struct SettingsColumns {
    pub deadline_ms: i32,
    pub connect_deadline_ms: i32,
    pub retry_schedule_ms: Vec<i64>,
    pub overload_floor_ms: i64,
    pub final_statuses: Vec<i16>,
    pub in_flight_max: i16,
    pub ingest_rate: i32,
    pub ingest_rate_ms: i64,
    pub public_ingest: bool,
}

impl SettingsColumns {
    pub(super) fn settings(self, endpoint: Uuid) -> Result<EndpointSettings, StoreError> {
        let bad = |column| corrupt("endpoints", column, endpoint);
        let delays = self.retry_schedule_ms.into_iter().map(duration).collect::<Option<Vec<_>>>();
        let unsigned = |status: i16| u16::try_from(status).ok();
        EndpointSettings::new(SettingsDraft {
            deadline: duration(self.deadline_ms.into()).ok_or_else(|| bad("deadline_ms"))?,
            connect_deadline: duration(self.connect_deadline_ms.into())
                .ok_or_else(|| bad("connect_deadline_ms"))?,
            retry_schedule: delays
                .and_then(|delays| RetrySchedule::new(delays).ok())
                .ok_or_else(|| bad("retry_schedule_ms"))?,
            overload_floor: duration(self.overload_floor_ms)
                .ok_or_else(|| bad("overload_floor_ms"))?,
            final_statuses: self
                .final_statuses
                .into_iter()
                .map(unsigned)
                .collect::<Option<Vec<_>>>()
                .ok_or_else(|| bad("final_statuses"))?,
            in_flight_max: unsigned(self.in_flight_max).ok_or_else(|| bad("in_flight_max"))?,
            ingest_rate: rate_limit(self.ingest_rate, self.ingest_rate_ms)
                .ok_or_else(|| bad("ingest_rate"))?,
            public_ingest: self.public_ingest,
        })
        .map_err(|error| bad(error.field))
    }
}

/// A row of `endpoints`.
#[derive(Debug)]
pub(super) struct EndpointRow {
    pub key: Uuid,
    pub application: Uuid,
    pub id: String,
    pub url: String,
    pub name: Option<String>,
    pub disabled_cause: Option<i16>,
    pub version: i64,
    pub deadline_ms: i32,
    pub connect_deadline_ms: i32,
    pub retry_schedule_ms: Vec<i64>,
    pub overload_floor_ms: i64,
    pub final_statuses: Vec<i16>,
    pub in_flight_max: i16,
    pub ingest_rate: i32,
    pub ingest_rate_ms: i64,
    pub public_ingest: bool,
    pub created_at: OffsetDateTime,
}

impl TryFrom<EndpointRow> for Endpoint {
    type Error = StoreError;

    fn try_from(row: EndpointRow) -> Result<Self, StoreError> {
        let settings = SettingsColumns {
            deadline_ms: row.deadline_ms,
            connect_deadline_ms: row.connect_deadline_ms,
            retry_schedule_ms: row.retry_schedule_ms,
            overload_floor_ms: row.overload_floor_ms,
            final_statuses: row.final_statuses,
            in_flight_max: row.in_flight_max,
            ingest_rate: row.ingest_rate,
            ingest_rate_ms: row.ingest_rate_ms,
            public_ingest: row.public_ingest,
        };
        let cause = |code| {
            codes::disabled_cause(code)
                .ok_or_else(|| corrupt("endpoints", "disabled_cause", row.key))
        };
        Ok(Self {
            key: EndpointKey::from_uuid(row.key),
            application: ApplicationKey::from_uuid(row.application),
            id: PublicId::parse(&row.id).map_err(|_| corrupt("endpoints", "id", row.key))?,
            url: row.url,
            name: row.name,
            disabled: row.disabled_cause.map(cause).transpose()?,
            settings: settings.settings(row.key)?,
            version: row.version,
            created_at: row.created_at,
        })
    }
}

/// A row of `submissions` with its endpoint's public id.
#[derive(Debug)]
pub(super) struct SubmissionRow {
    pub id: Uuid,
    pub webhook_id: Uuid,
    pub endpoint: Uuid,
    pub endpoint_id: String,
    pub deliveries: Vec<Uuid>,
    pub event_type: Option<String>,
    pub content_type: String,
    pub payload_bytes: i32,
    pub received_at: OffsetDateTime,
}

impl From<SubmissionRow> for Submission {
    fn from(row: SubmissionRow) -> Self {
        Self {
            id: SubmissionId::from_uuid(row.id),
            webhook_id: row.webhook_id,
            endpoint: EndpointKey::from_uuid(row.endpoint),
            endpoint_id: row.endpoint_id,
            deliveries: deliveries(row.deliveries),
            event_type: row.event_type,
            content_type: row.content_type,
            payload_bytes: count(row.payload_bytes).into(),
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
            replayable_until,
            settled_at: row.settled_at,
        })
    }
}
