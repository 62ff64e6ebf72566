//! The rows themselves, past the store: aged, read and cleared, on one connection.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;
use std::time::Duration;

use domain::delivery::DeliveryState;
use domain::endpoint::circuit::{Circuit, Counts};
use domain::id::{DeliveryId, EndpointKey};
use serde::Deserialize;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection, SqliteConnection};
use uuid::Uuid;

use super::model::{Age, Model, reason_of};
use super::operation::AgeLife;
use crate::fixture::Fixture;

/// How far a due time may lie from the model's, in seconds. All waits here are of an hour and more.
const DUE_TOLERANCE: i64 = 600;

#[derive(Debug)]
pub(crate) enum Rows {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

/// All that is compared after a step.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Snapshot {
    deliveries: BTreeMap<Uuid, SeenDelivery>,
    attempts: BTreeMap<String, SeenAttempt>,
    schedules: BTreeMap<Uuid, SeenSchedule>,
    keys: BTreeMap<String, Uuid>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct SeenDelivery {
    state: i16,
    reason: Option<i16>,
    attempts: u32,
    cycle_attempts: u32,
    lapses: u32,
    token: Option<Uuid>,
    /// Seconds from now, while it is owed or replayable.
    due_in: Option<i64>,
    /// Whether its lease is over, while it is processed.
    lapsed: Option<i16>,
    cancel_requested: i16,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct SeenAttempt {
    token: Uuid,
    late: i16,
    status: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct SeenSchedule {
    in_flight: i64,
    cap: i64,
    enabled: i16,
    deleted: i16,
    paused: i16,
    counts_from: i64,
    failing: i16,
    failures_in_a_row: u32,
    window_succeeded: u32,
    window_failed: u32,
    circuit_times: u32,
    circuit_cause: Option<i16>,
    /// Whether it lets nothing through.
    circuit_open: i16,
    probe: Option<Uuid>,
}

const POSTGRES: &str = "
    select json_build_object(
        'deliveries', (select coalesce(json_object_agg(id, json_build_object(
                'state', state, 'reason', reason, 'attempts', attempts,
                'cycle_attempts', cycle_attempts, 'lapses', lapses, 'token', claim_token,
                'due_in', extract(epoch from due_at - statement_timestamp())::bigint,
                'lapsed', case when state = 2
                    then (claim_expires_at <= statement_timestamp())::int end,
                'cancel_requested', (state = 2 and cancel_requested_at is not null)::int)), '{}')
            from (
                select id, state, reason, attempts, cycle_attempts, lapses, claim_token, due_at,
                    claim_expires_at, cancel_requested_at
                from fencepost.deliveries
                union all
                select id, state, reason, attempts, cycle_attempts, 0, null, null, null, null
                from fencepost.settled_deliveries
            ) d),
        'attempts', (select coalesce(json_object_agg(delivery || ' ' || number, json_build_object(
                'token', claim_token, 'late', late::int, 'status', status)), '{}')
            from fencepost.attempts),
        'schedules', (select coalesce(json_object_agg(endpoint, json_build_object(
                'in_flight', in_flight, 'cap', cap, 'enabled', enabled::int,
                'deleted', deleted::int,
                'paused', coalesce(paused_until > statement_timestamp(), false)::int,
                'counts_from', counts_from, 'failing', (failing_since is not null)::int,
                'failures_in_a_row', failures_in_a_row,
                'window_succeeded', case when window_since is null then 0 else window_succeeded end,
                'window_failed', case when window_since is null then 0 else window_failed end,
                'circuit_times', circuit_times, 'circuit_cause', circuit_cause,
                'circuit_open', coalesce(circuit_until > statement_timestamp(), false)::int,
                'probe', circuit_probe)), '{}')
            from fencepost.endpoint_schedule),
        'keys', (select coalesce(json_object_agg(scope || ' ' || key, submission), '{}')
            from fencepost.idempotency_keys)
    )::text";

const SQLITE: &str = "
    select json_object(
        'deliveries', (select json_group_object(lower(hex(id)), json_object(
                'state', state, 'reason', reason, 'attempts', attempts,
                'cycle_attempts', cycle_attempts, 'lapses', lapses,
                'token', nullif(lower(hex(claim_token)), ''),
                'due_in', due_at / 1000000 - unixepoch(),
                'lapsed', case when state = 2
                    then claim_expires_at <= unixepoch('subsec') * 1000000 end,
                'cancel_requested', state = 2 and cancel_requested_at is not null))
            from (
                select id, state, reason, attempts, cycle_attempts, lapses, claim_token, due_at,
                    claim_expires_at, cancel_requested_at
                from deliveries
                union all
                select id, state, reason, attempts, cycle_attempts, 0, null, null, null, null
                from settled_deliveries
            ) d),
        'attempts', (select json_group_object(lower(hex(delivery)) || ' ' || number, json_object(
                'token', lower(hex(claim_token)), 'late', late, 'status', status))
            from attempts),
        'schedules', (select json_group_object(lower(hex(endpoint)), json_object(
                'in_flight', in_flight, 'cap', cap, 'enabled', enabled, 'deleted', deleted,
                'paused', coalesce(paused_until > unixepoch('subsec') * 1000000, 0),
                'counts_from', counts_from, 'failing', failing_since is not null,
                'failures_in_a_row', failures_in_a_row,
                'window_succeeded', iif(window_since is null, 0, window_succeeded),
                'window_failed', iif(window_since is null, 0, window_failed),
                'circuit_times', circuit_times, 'circuit_cause', circuit_cause,
                'circuit_open', coalesce(circuit_until > unixepoch('subsec') * 1000000, 0),
                'probe', nullif(lower(hex(circuit_probe)), '')))
            from endpoint_schedule),
        'keys', (select json_group_object(
                lower(hex(scope)) || ' ' || key, lower(hex(submission)))
            from idempotency_keys)
    )";

const TABLES: [&str; 8] = [
    "attempts",
    "deliveries",
    "settled_deliveries",
    "submissions",
    "idempotency_keys",
    "endpoint_schedule",
    "endpoint_secrets",
    "endpoints",
];

impl Rows {
    pub(crate) async fn of(fixture: &Fixture) -> anyhow::Result<Self> {
        if fixture.url().starts_with("sqlite:") {
            let options = SqliteConnectOptions::from_str(fixture.url())?
                .busy_timeout(Duration::from_secs(10));
            return Ok(Self::Sqlite(options.connect().await?));
        }
        Ok(Self::Postgres(fixture.session().await?))
    }

    pub(crate) async fn age(
        &mut self,
        delivery: DeliveryId,
        age: Age,
        by: Duration,
    ) -> anyhow::Result<()> {
        let set = match age {
            Age::Lease => "claim_expires_at = claim_expires_at - {by}".to_owned(),
            Age::Due => "due_at = due_at - {by}".to_owned(),
            Age::Lapses => {
                format!(
                    "lapse_since = lapse_since - {{by}}, lapses = lapses + {}",
                    Age::LAPSES_ADDED
                )
            }
        };
        let (id, seconds) = (delivery.as_uuid(), i64::try_from(by.as_secs())?);
        match self {
            Self::Postgres(connection) => {
                let set = set.replace("{by}", "$2::bigint::float8 * interval '1 second'");
                // The marks are lowered too, so that the row stays in their sight.
                let text = format!(
                    "with aged as (
                        update fencepost.deliveries set {set} where id = $1 returning endpoint
                    )
                    update fencepost.endpoint_schedule s
                    set low_water = '-infinity', lease_low = '-infinity'
                    from aged where s.endpoint = aged.endpoint"
                );
                let query = sqlx::query(AssertSqlSafe(text)).bind(id).bind(seconds);
                query.execute(connection).await?;
            }
            Self::Sqlite(connection) => {
                let set = set.replace("{by}", "?2 * 1000000");
                let text = format!("update deliveries set {set} where id = ?1");
                let query = sqlx::query(AssertSqlSafe(text)).bind(id).bind(seconds);
                query.execute(connection).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn age_life(&mut self, key: EndpointKey, age: AgeLife) -> anyhow::Result<()> {
        let (set, by) = match age {
            AgeLife::Failing => (
                "failing_since = failing_since - {by}, failed_at = failed_at - {by} / 5",
                AgeLife::FAILING,
            ),
            AgeLife::NearlyOpen => (
                "failures_in_a_row =
                    case when circuit_times = 0 then 9 else failures_in_a_row end + 0 * {n}",
                Duration::ZERO,
            ),
            AgeLife::Opening => ("circuit_until = circuit_until - {by}", AgeLife::OPENING),
        };
        let (id, seconds) = (key.as_uuid(), i64::try_from(by.as_secs())?);
        match self {
            Self::Postgres(connection) => {
                let set = set.replace("{by}", "$2::bigint::float8 * interval '1 second'");
                let set = set.replace("{n}", "$2::bigint::int");
                let text =
                    format!("update fencepost.endpoint_schedule set {set} where endpoint = $1");
                let query = sqlx::query(AssertSqlSafe(text)).bind(id).bind(seconds);
                query.execute(connection).await?;
            }
            Self::Sqlite(connection) => {
                let set = set.replace("{by}", "?2 * 1000000").replace("{n}", "?2");
                let text = format!("update endpoint_schedule set {set} where endpoint = ?1");
                let query = sqlx::query(AssertSqlSafe(text)).bind(id).bind(seconds);
                query.execute(connection).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn expire_key(
        &mut self,
        endpoint: EndpointKey,
        key: &str,
    ) -> anyhow::Result<()> {
        let scope = endpoint.as_uuid();
        match self {
            Self::Postgres(connection) => {
                let text = "update fencepost.idempotency_keys
                    set expires_at = statement_timestamp() where scope = $1 and key = $2";
                sqlx::query(text).bind(scope).bind(key).execute(connection).await?;
            }
            Self::Sqlite(connection) => {
                let text = "update idempotency_keys
                    set expires_at = unixepoch() * 1000000 where scope = ?1 and key = ?2";
                sqlx::query(text).bind(scope).bind(key).execute(connection).await?;
            }
        }
        Ok(())
    }

    /// Takes away all that a case leaves, so that the next one has the tables to itself.
    pub(crate) async fn clear(&mut self) -> anyhow::Result<()> {
        for table in TABLES {
            match self {
                Self::Postgres(connection) => {
                    let text = format!("delete from fencepost.{table}");
                    sqlx::query(AssertSqlSafe(text)).execute(connection).await?;
                }
                Self::Sqlite(connection) => {
                    let text = format!("delete from {table}");
                    sqlx::query(AssertSqlSafe(text)).execute(connection).await?;
                }
            }
        }
        Ok(())
    }

    pub(crate) async fn snapshot(&mut self) -> anyhow::Result<Snapshot> {
        let text: String = match self {
            Self::Postgres(connection) => {
                sqlx::query_scalar(POSTGRES).fetch_one(connection).await?
            }
            Self::Sqlite(connection) => sqlx::query_scalar(SQLITE).fetch_one(connection).await?,
        };
        Ok(serde_json::from_str(&text)?)
    }
}

impl Snapshot {
    pub(crate) fn of(model: &Model, is_postgres: bool) -> Self {
        // Text keys are spelled as the database spells ids.
        let spelled = |id: Uuid| {
            if is_postgres { id.hyphenated().to_string() } else { id.simple().to_string() }
        };
        let mut attempts = BTreeMap::new();
        for (id, it) in &model.deliveries {
            for (attempt, number) in it.attempts.iter().zip(1..) {
                let (token, status) = (attempt.token.as_uuid(), attempt.status);
                let seen = SeenAttempt { token, late: attempt.late.into(), status };
                attempts.insert(format!("{} {number}", spelled(id.as_uuid())), seen);
            }
        }
        let schedules = model.endpoints.iter().map(|(key, it)| {
            let (counts, opening) = match it.circuit {
                Circuit::Closed(counts) => (counts, None),
                Circuit::Open(opening) => (Counts::default(), Some(opening)),
            };
            let seen = SeenSchedule {
                in_flight: model.in_flight(*key),
                cap: it.settings.in_flight_max().into(),
                enabled: it.disabled.is_none().into(),
                deleted: it.deleted.into(),
                paused: it.paused.into(),
                counts_from: it.counts_from,
                failing: it.failing.is_some().into(),
                failures_in_a_row: counts.in_a_row,
                window_succeeded: counts.succeeded,
                window_failed: counts.failed,
                circuit_times: opening.map_or(0, |it| it.times),
                circuit_cause: opening.map(|it| store::codes::of_open_cause(it.cause)),
                circuit_open: (it.circuit.admits(model.now) == 0).into(),
                probe: opening.and_then(|it| it.probe).map(domain::id::ClaimToken::as_uuid),
            };
            (key.as_uuid(), seen)
        });
        let keys = model.keys.iter().map(|((scope, key), it)| {
            (format!("{} {key}", spelled(scope.as_uuid())), it.submission.as_uuid())
        });
        Self {
            deliveries: seen_deliveries(model),
            attempts,
            schedules: schedules.collect(),
            keys: keys.collect(),
        }
    }

    /// Takes over due times of the other that are as good as equal.
    pub(crate) fn align(&mut self, with: &Self) {
        for (id, it) in &mut self.deliveries {
            let due_in = with.deliveries.get(id).and_then(|other| other.due_in);
            let (Some(mine), Some(theirs)) = (it.due_in, due_in) else { continue };
            if (mine - theirs).abs() <= DUE_TOLERANCE {
                it.due_in = Some(theirs);
            }
        }
    }

    /// What is not the same, a line for each side; empty if all is.
    pub(crate) fn differences(&self, model: &Self) -> String {
        differing(&model.deliveries, &self.deliveries)
            + &differing(&model.attempts, &self.attempts)
            + &differing(&model.schedules, &self.schedules)
            + &differing(&model.keys, &self.keys)
    }
}

fn differing<K, V>(model: &BTreeMap<K, V>, store: &BTreeMap<K, V>) -> String
where
    K: Ord + std::fmt::Display,
    V: PartialEq + std::fmt::Debug,
{
    let keys: BTreeSet<&K> = model.keys().chain(store.keys()).collect();
    let differing = keys.into_iter().filter(|key| model.get(key) != store.get(key));
    differing.fold(String::new(), |text, key| {
        let (model, store) = (model.get(key), store.get(key));
        format!("{text}  {key}\n    model {model:?}\n    store {store:?}\n")
    })
}

fn seen_deliveries(model: &Model) -> BTreeMap<Uuid, SeenDelivery> {
    let seen = model.deliveries.iter().map(|(id, it)| {
        let state = &it.delivery.state;
        let due_in = (it.due_at - model.now).whole_seconds();
        let is_processing = matches!(state, DeliveryState::Processing { .. });
        let seen = SeenDelivery {
            state: store::codes::of_state(state.name()),
            reason: reason_of(state),
            attempts: it.delivery.attempts,
            cycle_attempts: it.delivery.cycle_attempts,
            lapses: it.lapses,
            token: state.claim().map(domain::id::ClaimToken::as_uuid),
            due_in: (!it.is_settled()).then_some(due_in),
            lapsed: is_processing.then_some(it.has_lapsed(model.now).into()),
            cancel_requested: it.cancel_requested().into(),
        };
        (id.as_uuid(), seen)
    });
    seen.collect()
}
