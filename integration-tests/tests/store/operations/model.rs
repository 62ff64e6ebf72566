//! The store as pure functions of what it holds: the domain's transitions, and the conditions that a
//! store asks beside them. No SQL, no clock: time passes by a tick a call, and otherwise by aging.

pub(crate) mod claim;
pub(crate) mod endpoints;
mod life;
pub(crate) mod submissions;
mod upkeep;

use std::collections::BTreeMap;
use std::time::Duration;

use domain::delivery::{CancelReason, Delivery, DeliveryState, FailureReason, StateName};
use domain::endpoint::circuit::Circuit;
use domain::endpoint::{DisabledCause, EndpointSettings, Failing};
use domain::id::{ClaimToken, DeliveryId, EndpointKey, SubmissionId};
use domain::submission::Fingerprint;
use store::delivery::{Cancellation, HeldClaim, Recording, Replay, Report};
use time::OffsetDateTime;

pub(crate) const RETENTION: Duration = Duration::from_hours(30 * 24);

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) now: OffsetDateTime,
    pub(crate) endpoints: BTreeMap<EndpointKey, ModelEndpoint>,
    pub(crate) submissions: BTreeMap<SubmissionId, ModelSubmission>,
    pub(crate) deliveries: BTreeMap<DeliveryId, ModelDelivery>,
    pub(crate) keys: BTreeMap<(EndpointKey, String), ModelKey>,
}

#[derive(Debug, Clone)]
pub(crate) struct ModelEndpoint {
    pub(crate) settings: EndpointSettings,
    pub(crate) disabled: Option<DisabledCause>,
    pub(crate) paused: bool,
    pub(crate) deleted: bool,
    pub(crate) version: i64,
    pub(crate) counts_from: i64,
    pub(crate) failing: Option<Failing>,
    pub(crate) circuit: Circuit,
}

#[derive(Debug, Clone)]
pub(crate) struct ModelSubmission {
    pub(crate) delivery: DeliveryId,
    pub(crate) erased: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct ModelDelivery {
    pub(crate) endpoint: EndpointKey,
    pub(crate) submission: SubmissionId,
    pub(crate) delivery: Delivery,
    /// When it was due last, also while it is claimed.
    pub(crate) due_at: OffsetDateTime,
    /// Lapses in a row, also where the state does not say.
    pub(crate) lapses: u32,
    pub(crate) attempts: Vec<ModelAttempt>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelAttempt {
    pub(crate) token: ClaimToken,
    pub(crate) late: bool,
    pub(crate) status: Option<u16>,
}

#[derive(Debug, Clone)]
pub(crate) struct ModelKey {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) submission: SubmissionId,
    pub(crate) delivery: DeliveryId,
    pub(crate) expires_at: OffsetDateTime,
}

impl ModelEndpoint {
    /// Whether it takes deliveries, apart from a pause.
    pub(crate) fn is_enabled(&self) -> bool {
        self.disabled.is_none() && !self.deleted
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_enabled() && !self.paused
    }
}

impl ModelDelivery {
    fn accepted(endpoint: EndpointKey, submission: SubmissionId, now: OffsetDateTime) -> Self {
        let delivery = Delivery::accepted(now);
        Self { endpoint, submission, delivery, due_at: now, lapses: 0, attempts: Vec::new() }
    }

    /// Takes over what a transition left, as a store writes it.
    fn write(&mut self, delivery: Delivery) {
        match &delivery.state {
            DeliveryState::Pending { due_at, lapses, .. } => {
                self.due_at = *due_at;
                self.lapses = lapses.map_or(0, |lapses| lapses.count);
            }
            DeliveryState::Processing { lapses, .. } => {
                self.lapses = lapses.map_or(0, |lapses| lapses.count);
            }
            DeliveryState::Failed { expires_at, claim, .. } => {
                self.due_at = *expires_at;
                // A report ends the lapses; where there was none, they stay to be seen.
                if claim.is_none() {
                    self.lapses = 0;
                }
            }
            _ => self.lapses = 0,
        }
        self.delivery = delivery;
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.delivery.state.name().is_settled()
    }

    pub(crate) fn cancel_requested(&self) -> bool {
        matches!(self.delivery.state, DeliveryState::Processing { cancel_requested: true, .. })
    }

    pub(crate) fn has_lapsed(&self, now: OffsetDateTime) -> bool {
        matches!(self.delivery.state, DeliveryState::Processing { claim_expires_at, .. }
            if claim_expires_at <= now)
    }

    pub(crate) fn is_due(&self, now: OffsetDateTime) -> bool {
        matches!(self.delivery.state, DeliveryState::Pending { due_at, .. } if due_at <= now)
    }
}

impl Model {
    pub(crate) fn new(
        now: OffsetDateTime,
        endpoints: impl IntoIterator<Item = (EndpointKey, EndpointSettings)>,
    ) -> Self {
        let fresh = |settings| ModelEndpoint {
            settings,
            disabled: None,
            paused: false,
            deleted: false,
            version: 1,
            counts_from: 0,
            failing: None,
            circuit: Circuit::default(),
        };
        Self {
            now,
            endpoints: endpoints.into_iter().map(|(key, it)| (key, fresh(it))).collect(),
            submissions: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            keys: BTreeMap::new(),
        }
    }

    /// A little time passes: calls do not happen at the same instant.
    pub(crate) fn tick(&mut self) {
        self.now += Duration::from_millis(1);
    }

    pub(crate) fn in_flight(&self, endpoint: EndpointKey) -> i64 {
        let of_it = self.deliveries.values().filter(|it| it.endpoint == endpoint);
        of_it.map(|it| i64::from(it.delivery.state.holds_slot())).sum()
    }

    pub(crate) fn record(&mut self, reports: &[Report]) -> Vec<Recording> {
        let recordings: Vec<Recording> =
            reports.iter().map(|report| self.record_one(report)).collect();
        self.count(reports, &recordings);
        recordings
    }

    fn record_one(&mut self, report: &Report) -> Recording {
        let deleted = self.endpoints.get(&report.endpoint).is_some_and(|it| it.deleted);
        let Some(it) = self.deliveries.get_mut(&report.delivery) else { return Recording::Gone };
        let reported = it.attempts.iter().position(|attempt| attempt.token == report.token);
        let number = reported.and_then(|at| u32::try_from(at + 1).ok());
        let (token, verdict) = (report.token, report.verdict);
        let mut delivery = it.delivery.clone();
        let recorded =
            Recording::from(delivery.report(token, verdict, number, deleted, RETENTION, self.now));
        if let Recording::Fenced(_) | Recording::Late(_) = recorded {
            let late = matches!(recorded, Recording::Late(_));
            it.attempts.push(ModelAttempt { token, late, status: report.outcome.status() });
            it.write(delivery);
        }
        recorded
    }

    pub(crate) fn give_back(&mut self, claims: &[HeldClaim]) -> Vec<DeliveryId> {
        let mut given_back = Vec::new();
        for claim in claims {
            let Some(it) = self.deliveries.get_mut(&claim.delivery) else { continue };
            let mut delivery = it.delivery.clone();
            if delivery.give_back(claim.token, it.due_at).is_ok() {
                it.write(delivery);
                given_back.push(claim.delivery);
                if let Some(endpoint) = self.endpoints.get_mut(&it.endpoint) {
                    endpoint.circuit.give_back(claim.token, self.now);
                }
            }
        }
        given_back
    }

    pub(crate) fn replay(&mut self, id: DeliveryId) -> Replay {
        let Some(it) = self.deliveries.get(&id) else { return Replay::Missing };
        let erased = self.submissions.get(&it.submission).is_some_and(|it| it.erased);
        let takes = self.endpoints.get(&it.endpoint).is_some_and(ModelEndpoint::is_enabled);
        let mut delivery = it.delivery.clone();
        match (delivery.replay(self.now), &it.delivery.state) {
            (Ok(()), _) if erased => Replay::PayloadErased,
            (Ok(()), _) if !takes => Replay::EndpointDisabled,
            (Ok(()), _) => {
                self.write(id, delivery);
                Replay::Replayed
            }
            (Err(_), DeliveryState::Failed { .. } | DeliveryState::Expired { .. }) => {
                Replay::Expired
            }
            (Err(_), DeliveryState::Cancelled { reason: CancelReason::PayloadErased }) => {
                Replay::PayloadErased
            }
            (Err(refused), _) => Replay::NotReplayable(refused.0),
        }
    }

    pub(crate) fn cancel(&mut self, id: DeliveryId, why: CancelReason) -> Cancellation {
        let Some(it) = self.deliveries.get(&id) else { return Cancellation::Missing };
        let mut delivery = it.delivery.clone();
        if let Err(refused) = delivery.cancel(why) {
            return Cancellation::NotCancellable(refused.0);
        }
        let name = delivery.state.name();
        self.write(id, delivery);
        if name == StateName::Cancelled { Cancellation::Cancelled } else { Cancellation::Requested }
    }

    fn write(&mut self, id: DeliveryId, delivery: Delivery) {
        if let Some(it) = self.deliveries.get_mut(&id) {
            it.write(delivery);
        }
    }

    // Aging.

    pub(crate) fn age(&mut self, id: DeliveryId, age: Age, by: Duration) {
        let Some(it) = self.deliveries.get_mut(&id) else { return };
        if age == Age::Due {
            it.due_at -= by;
        }
        match (&mut it.delivery.state, age) {
            (DeliveryState::Processing { claim_expires_at: until, .. }, Age::Lease)
            | (
                DeliveryState::Pending { due_at: until, .. }
                | DeliveryState::Failed { expires_at: until, .. },
                Age::Due,
            ) => *until -= by,
            (
                DeliveryState::Processing { lapses: Some(lapses), .. }
                | DeliveryState::Pending { lapses: Some(lapses), .. },
                Age::Lapses,
            ) => {
                lapses.count += Age::LAPSES_ADDED;
                lapses.since -= by;
                it.lapses = lapses.count;
            }
            _ => {}
        }
    }
}

/// What of a delivery is made older.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// The end of its lease.
    Lease,
    /// When it is due, or, failed, when it expires.
    Due,
    /// When its lapses began; and there were more of them.
    Lapses,
}

impl Age {
    /// Ten in a row are too many to be drawn one by one.
    pub(crate) const LAPSES_ADDED: u32 = 7;
}

/// The number of a reason in the tables.
pub(crate) fn reason_of(state: &DeliveryState) -> Option<i16> {
    let failure = |reason: FailureReason| Some(store::codes::of_failure_reason(reason));
    match state {
        DeliveryState::Failed { reason, .. } | DeliveryState::Expired { reason } => {
            failure(*reason)
        }
        DeliveryState::Cancelled { reason } => Some(store::codes::of_cancel_reason(*reason)),
        _ => None,
    }
}
