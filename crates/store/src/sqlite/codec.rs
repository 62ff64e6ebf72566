//! Rows of SQLite and what they mean.

mod endpoint;

use std::fmt::Display;
use std::time::Duration;

use domain::delivery::StateName;
use domain::delivery::retry::RetrySchedule;
use domain::id::{DeliveryId, EndpointKey, SubmissionId};
use serde_json::Value;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::sqlite::{SqliteTypeInfo, SqliteValueRef};
use sqlx::{Database, Decode, Encode, FromRow, Sqlite, Type};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::delivery::DeliveryView;
use crate::submission::Submission;
use crate::{StoreError, codes};

pub(super) use endpoint::{EndpointRow, SettingsColumns, json_of_texts, rate};

/// An instant as it is stored: microseconds since 1970.
///
/// The driver would write an [`OffsetDateTime`] as text, which compares with no integer: it is
/// never bound as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UnixMicros(pub(super) OffsetDateTime);

impl Type<Sqlite> for UnixMicros {
    fn type_info() -> SqliteTypeInfo {
        <i64 as Type<Sqlite>>::type_info()
    }

    fn compatible(column: &SqliteTypeInfo) -> bool {
        <i64 as Type<Sqlite>>::compatible(column)
    }
}

impl Encode<'_, Sqlite> for UnixMicros {
    fn encode_by_ref(
        &self,
        arguments: &mut <Sqlite as Database>::ArgumentBuffer,
    ) -> Result<IsNull, BoxDynError> {
        let micros = i64::try_from(self.0.unix_timestamp_nanos() / 1_000)?;
        <i64 as Encode<Sqlite>>::encode(micros, arguments)
    }
}

impl Decode<'_, Sqlite> for UnixMicros {
    fn decode(value: SqliteValueRef<'_>) -> Result<Self, BoxDynError> {
        let micros = <i64 as Decode<Sqlite>>::decode(value)?;
        let instant = OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1_000)?;
        Ok(Self(instant))
    }
}

/// The error for a value that no statement of ours writes.
pub(super) fn corrupt(table: &'static str, column: &'static str, row: impl Display) -> StoreError {
    StoreError::Corrupt { table, column, row: row.to_string() }
}

/// A duration as the milliseconds of a column.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn duration(column: i64) -> Option<Duration> {
    u64::try_from(column).ok().map(Duration::from_millis)
}

/// Numbers as a JSON array.
pub(super) fn json_of_numbers(numbers: impl IntoIterator<Item = i64>) -> String {
    numbers.into_iter().collect::<Value>().to_string()
}

/// UUIDs as a JSON array of texts. SQL turns one into the BLOB that a column holds by
/// `unhex(text, '-')`.
pub(super) fn json_of_uuids(uuids: impl IntoIterator<Item = Uuid>) -> String {
    uuids.into_iter().map(|uuid| uuid.to_string()).collect::<Value>().to_string()
}

/// The deliveries of a column that [`json_of_uuids`] wrote.
pub(super) fn deliveries(json: &str) -> Option<Vec<DeliveryId>> {
    let ids: Vec<Uuid> = serde_json::from_str(json).ok()?;
    Some(ids.into_iter().map(DeliveryId::from_uuid).collect())
}

/// What every id of a page is lower than. Without a bound that is 17 bytes, after which no UUID
/// sorts.
pub(super) fn upper_bound(before: Option<Uuid>) -> Vec<u8> {
    before.map_or_else(|| vec![0xff; 17], |id| id.as_bytes().to_vec())
}

/// The retry schedule of a row of `endpoints`.
pub(super) fn retry_schedule(json: &str, endpoint: Uuid) -> Result<RetrySchedule, StoreError> {
    serde_json::from_str::<Vec<u64>>(json)
        .ok()
        .map(|delays| delays.into_iter().map(Duration::from_millis).collect())
        .and_then(|delays| RetrySchedule::new(delays).ok())
        .ok_or_else(|| corrupt("endpoints", "retry_schedule_ms", endpoint))
}

/// A row of `submissions` with its endpoint's public id.
#[derive(Debug, FromRow)]
pub(super) struct SubmissionRow {
    id: Uuid,
    webhook_id: Uuid,
    resend_of: Option<Uuid>,
    endpoint: Uuid,
    endpoint_id: String,
    deliveries: String,
    event_type: Option<String>,
    content_type: String,
    payload_bytes: u32,
    received_at: UnixMicros,
    erased_at: Option<UnixMicros>,
}

impl TryFrom<SubmissionRow> for Submission {
    type Error = StoreError;

    fn try_from(row: SubmissionRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: SubmissionId::from_uuid(row.id),
            webhook_id: row.webhook_id,
            resend_of: row.resend_of.map(SubmissionId::from_uuid),
            endpoint: EndpointKey::from_uuid(row.endpoint),
            endpoint_id: row.endpoint_id,
            deliveries: deliveries(&row.deliveries)
                .ok_or_else(|| corrupt("submissions", "deliveries", row.id))?,
            event_type: row.event_type,
            content_type: row.content_type,
            payload_bytes: row.payload_bytes.into(),
            erased_at: row.erased_at.map(|at| at.0),
            received_at: row.received_at.0,
        })
    }
}

/// A row of `deliveries` or of `settled_deliveries` as it is shown, with its endpoint's public id.
#[derive(Debug, FromRow)]
pub(super) struct DeliveryViewRow {
    id: Uuid,
    endpoint: Uuid,
    endpoint_id: String,
    submission: Uuid,
    state: i16,
    reason: Option<i16>,
    attempts: u32,
    cycle_attempts: u32,
    lapses: u32,
    due_at: Option<UnixMicros>,
    claim_expires_at: Option<UnixMicros>,
    claimed_by: Option<String>,
    cancel_requested: bool,
    settled_at: Option<UnixMicros>,
}

impl TryFrom<DeliveryViewRow> for DeliveryView {
    type Error = StoreError;

    fn try_from(row: DeliveryViewRow) -> Result<Self, StoreError> {
        let state = codes::state(row.state);
        let table = match state {
            Some(state) if state.is_settled() => "settled_deliveries",
            _ => "deliveries",
        };
        let bad = |column| corrupt(table, column, row.id);
        let state = state.ok_or_else(|| bad("state"))?;
        let failure = row.reason.and_then(codes::failure_reason);
        let cancellation = row.reason.and_then(codes::cancel_reason);
        let only_in = |wanted: StateName, at: Option<UnixMicros>| {
            at.filter(|_| state == wanted).map(|UnixMicros(at)| at)
        };
        let due_at = only_in(StateName::Pending, row.due_at);
        let claim_expires_at = only_in(StateName::Processing, row.claim_expires_at);
        let replayable_until = only_in(StateName::Failed, row.due_at);
        // Each state has just the facts that are true in it.
        let reason_fits = match state {
            StateName::Pending | StateName::Processing | StateName::Delivered => {
                row.reason.is_none()
            }
            StateName::Failed | StateName::Expired => failure.is_some(),
            StateName::Cancelled => cancellation.is_some(),
        };
        if !reason_fits {
            return Err(bad("reason"));
        }
        if state == StateName::Processing && claim_expires_at.is_none() {
            return Err(bad("claim_expires_at"));
        }
        if state.is_settled() != row.settled_at.is_some() {
            return Err(bad("state"));
        }
        Ok(Self {
            id: DeliveryId::from_uuid(row.id),
            endpoint: EndpointKey::from_uuid(row.endpoint),
            endpoint_id: row.endpoint_id,
            submission: SubmissionId::from_uuid(row.submission),
            state,
            failure,
            cancellation,
            attempts: row.attempts,
            cycle_attempts: row.cycle_attempts,
            lapses: row.lapses,
            due_at,
            claim_expires_at,
            claimed_by: row.claimed_by,
            cancel_requested: row.cancel_requested,
            replayable_until,
            settled_at: row.settled_at.map(|UnixMicros(at)| at),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_instant_keeps_its_microseconds_and_sorts_as_a_number() {
        let pool = sqlx::SqlitePool::connect("sqlite::memory:").await.unwrap();
        let nanos = 1_796_043_425_123_456_789;
        let instant = OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap();
        let (stored, kind): (UnixMicros, String) = sqlx::query_as("SELECT ?1, typeof(?1)")
            .bind(UnixMicros(instant))
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!(kind, "integer");
        assert_eq!(stored.0.unix_timestamp_nanos(), nanos / 1_000 * 1_000);
    }

    #[tokio::test]
    async fn uuids_of_a_json_array_become_the_blobs_of_columns() {
        let pool = sqlx::SqlitePool::connect("sqlite::memory:").await.unwrap();
        let uuids = [crate::new_id::uuid_now(), crate::new_id::uuid_now()];
        let blobs: Vec<Uuid> =
            sqlx::query_scalar("SELECT unhex(value, '-') FROM json_each(?1) ORDER BY key")
                .bind(json_of_uuids(uuids))
                .fetch_all(&pool)
                .await
                .unwrap();
        assert_eq!(blobs, uuids);
        let ids = deliveries(&json_of_uuids(uuids)).unwrap();
        assert_eq!(ids, uuids.map(DeliveryId::from_uuid));
        assert!(deliveries("[1]").is_none());
    }

    #[test]
    fn without_a_bound_a_page_takes_every_id() {
        assert!(upper_bound(None).as_slice() > Uuid::max().as_bytes().as_slice());
        let id = crate::new_id::uuid_now();
        assert_eq!(upper_bound(Some(id)), id.as_bytes());
    }

    #[test]
    fn a_damaged_schedule_is_named_by_table_column_and_row() {
        let endpoint = crate::new_id::uuid_now();
        for json in ["", "[]", "[-1]", "[\"5\"]", "{}"] {
            let error = retry_schedule(json, endpoint).unwrap_err().to_string();
            assert!(error.contains("endpoints"), "{error}");
            assert!(error.contains("retry_schedule_ms"), "{error}");
            assert!(error.contains(&endpoint.to_string()), "{error}");
        }
        let schedule = RetrySchedule::default();
        let json = json_of_numbers(schedule.delays().iter().copied().map(millis));
        assert_eq!(retry_schedule(&json, endpoint).unwrap(), schedule);
    }
}
