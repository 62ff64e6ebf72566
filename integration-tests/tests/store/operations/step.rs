//! An operation once it is known what it is about: one call, with its arguments.

use std::fmt;
use std::time::Duration;

use domain::delivery::retry::RetrySchedule;
use domain::delivery::{Failure, Outcome, RetryPolicy, decide};
use domain::endpoint::SettingsChange;
use domain::id::{ClaimToken, DeliveryId, EndpointKey, SubmissionId};
use domain::submission::IdempotencyKey;
use store::delivery::{HeldClaim, Report};
use store::endpoint::{Endpoint, EndpointChange};
use store::submission::{NewResend, NewSubmission};
use time::OffsetDateTime;
use uuid::Uuid;

use super::model::{Age, Model, ModelDelivery};
use super::operation::{AgeLife, Answered, Change, Endpoints, Operation, Place, Upkeep};
use crate::fixture;

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Accept(Vec<NewSubmission>),
    Claim(Claim),
    FindDue,
    Record(Vec<Report>),
    GiveBack(Vec<HeldClaim>),
    Age(DeliveryId, Age, Duration),
    AgeLife(EndpointKey, AgeLife),
    ExpireKey((EndpointKey, String)),
    Replay(DeliveryId),
    Cancel(DeliveryId),
    Erase(SubmissionId),
    Resend(NewResend),
    Patch(EndpointKey, Box<EndpointChange>),
    Pause(EndpointKey),
    Enable(EndpointKey),
    Disable(EndpointKey, i64),
    Delete(EndpointKey),
    Maintain(Upkeep),
}

#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) endpoints: Vec<EndpointKey>,
    pub(crate) per_endpoint: u32,
    pub(crate) total: u32,
    pub(crate) token: ClaimToken,
    pub(crate) sweep: bool,
}

/// A claim that a worker got, and what it was told of the cycle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handed {
    pub(crate) claim: HeldClaim,
    pub(crate) cycle_attempts: u32,
    /// Of the endpoint, when it was read for the request.
    pub(crate) version: i64,
}

/// What a case has come to.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) model: Model,
    pub(crate) handed: Vec<Handed>,
    accepted_last: Vec<NewSubmission>,
    agings: u32,
    /// What people call the ids of this case.
    names: Vec<(Uuid, String)>,
}

/// The one at that place, counted round.
fn at<T: Clone>(all: &[T], place: Place) -> Option<T> {
    all.get(place.checked_rem(all.len())?).cloned()
}

impl Case {
    pub(crate) fn new(endpoints: Vec<Endpoint>, now: OffsetDateTime) -> Self {
        let settings = endpoints.iter().map(|it| (it.key, it.settings.clone()));
        let model = Model::new(now, settings);
        let names = endpoints.iter().zip(0..).map(|(it, n)| (it.key.as_uuid(), format!("e{n}")));
        let names = names.collect();
        let (handed, accepted_last) = (Vec::new(), Vec::new());
        Self { endpoints, model, handed, accepted_last, agings: 0, names }
    }

    /// None if there is nothing that the operation could be about.
    pub(crate) fn resolve(&mut self, operation: &Operation) -> anyhow::Result<Option<Step>> {
        let now = self.model.now;
        let endpoint = |place: Place| at(&self.endpoints, place).map(|it| it.key);
        Ok(match operation {
            Operation::Accept { endpoint, key, content, copies } => {
                self.new_submissions(*endpoint, *key, *content, *copies)?
            }
            Operation::AcceptAgain => self.accept_again(),
            Operation::Claim { endpoints, per_endpoint, total, sweep } => {
                Some(Step::Claim(self.new_claim(*endpoints, *per_endpoint, *total, *sweep)))
            }
            Operation::FindDue => Some(Step::FindDue),
            Operation::Record { claims, answer } => {
                let handed = self.handed_at(claims);
                let reports = handed.into_iter().map(|it| self.report(it, *answer)).collect();
                Some(reports).filter(|it: &Vec<_>| !it.is_empty()).map(Step::Record)
            }
            Operation::GiveBack { claims } => {
                let held: Vec<_> = self.handed_at(claims).iter().map(|it| it.claim).collect();
                Some(held).filter(|it| !it.is_empty()).map(Step::GiveBack)
            }
            Operation::EndLease(place) => self.age(*place, Age::Lease, |it| {
                it.delivery.state.holds_slot() && !it.has_lapsed(now)
            }),
            Operation::MakeDue(place) => self.age(*place, Age::Due, |it| {
                !it.is_settled() && !it.delivery.state.holds_slot() && !it.is_due(now)
            }),
            Operation::AgeLapses(place) => self.age(*place, Age::Lapses, |it| it.lapses > 0),
            Operation::AgeLife { endpoint: place, age } => {
                endpoint(*place).map(|key| Step::AgeLife(key, *age))
            }
            Operation::ExpireKey(place) => {
                let keys: Vec<_> = self.model.keys.keys().cloned().collect();
                at(&keys, *place).map(Step::ExpireKey)
            }
            Operation::Replay(place) => {
                let failed = |it: &ModelDelivery| it.delivery.state.name().as_str() == "failed";
                self.delivery(*place, failed).map(Step::Replay)
            }
            Operation::Cancel(place) => {
                self.delivery(*place, |it| !it.is_settled()).map(Step::Cancel)
            }
            Operation::Erase(place) => {
                let id = self.delivery(*place, |it| !it.is_settled());
                let it = id.and_then(|id| self.model.deliveries.get(&id));
                it.map(|it| Step::Erase(it.submission))
            }
            Operation::Resend { delivery, key } => self.resend(*delivery, *key)?,
            Operation::Patch { endpoint: place, change } => {
                let change = patch(*change)?;
                endpoint(*place).map(|key| Step::Patch(key, Box::new(change)))
            }
            Operation::Pause(place) => endpoint(*place).map(Step::Pause),
            Operation::Enable(place) => endpoint(*place).map(Step::Enable),
            Operation::Disable { endpoint: place, stale } => {
                let version = |key| self.model.endpoints.get(&key).map_or(0, |it| it.version);
                endpoint(*place).map(|key| Step::Disable(key, version(key) - i64::from(*stale)))
            }
            Operation::Delete(place) => endpoint(*place).map(Step::Delete),
            Operation::Maintain(upkeep) => Some(Step::Maintain(*upkeep)),
        })
    }

    fn name(&mut self, id: Uuid, prefix: char) {
        let count = self.names.iter().filter(|(_, name)| name.starts_with(prefix)).count();
        self.names.push((id, format!("{prefix}{count}")));
    }

    /// A text with the names of what it tells of.
    pub(crate) fn named(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (id, name)| {
            text.replace(&id.hyphenated().to_string(), name)
        })
    }

    fn new_submissions(
        &mut self,
        endpoint: Place,
        key: Option<u8>,
        content: u8,
        copies: u8,
    ) -> anyhow::Result<Option<Step>> {
        let Some(endpoint) = at(&self.endpoints, endpoint) else { return Ok(None) };
        let key = key.map(|key| format!("k{key}"));
        self.accepted_last.clear();
        for _ in 0..copies {
            let new = fixture::submission(&endpoint, key.as_deref(), &[b'0' + content])?;
            self.name(new.id.as_uuid(), 's');
            self.name(new.delivery.as_uuid(), 'd');
            self.accepted_last.push(new);
        }
        Ok(Some(Step::Accept(self.accepted_last.clone())))
    }

    /// A call is repeated within seconds: never after the time of its key.
    fn accept_again(&self) -> Option<Step> {
        let new = self.accepted_last.clone();
        let is_remembered = |it: &NewSubmission| {
            it.idempotency_key.as_ref().is_none_or(|key| {
                let scoped = (it.endpoint, key.as_str().to_owned());
                let stored = self.model.keys.get(&scoped);
                stored.is_some_and(|stored| stored.expires_at > self.model.now)
            })
        };
        (!new.is_empty() && new.iter().all(is_remembered)).then_some(Step::Accept(new))
    }

    fn new_claim(
        &mut self,
        endpoints: Endpoints,
        per_endpoint: u32,
        total: u32,
        sweep: bool,
    ) -> Claim {
        let token = store::new_id::claim_token();
        self.name(token.as_uuid(), 'c');
        // Which endpoint gets what of too small a total is not promised.
        let (endpoints, total) = match endpoints {
            Endpoints::One(place) => (at(&self.endpoints, place).into_iter().collect(), total),
            Endpoints::All => (self.endpoints.clone(), 1_000),
        };
        let endpoints = endpoints.iter().map(|it: &Endpoint| it.key).collect();
        Claim { endpoints, per_endpoint, total, token, sweep }
    }

    /// The last ones first. A delivery that stands twice stands there alone: in which order others
    /// beside it become due is not promised.
    fn handed_at(&self, places: &[Place]) -> Vec<Handed> {
        let newest_first: Vec<Handed> = self.handed.iter().rev().copied().collect();
        let mut chosen: Vec<Handed> = Vec::new();
        for handed in places.iter().filter_map(|place| at(&newest_first, *place)) {
            let same = |other: &Handed| other.claim.delivery == handed.claim.delivery;
            if chosen.iter().any(same) {
                chosen.retain(same);
                chosen.push(handed);
                break;
            }
            chosen.push(handed);
        }
        chosen
    }

    fn report(&self, handed: Handed, answer: Answered) -> Report {
        let outcome = match answer {
            Answered::Status(status) => Outcome::Answered { status, retry_after: None },
            Answered::TimedOut => Outcome::Unanswered(Failure::TimedOut),
        };
        let mut report = fixture::report(handed.claim, fixture::failure());
        report.version = handed.version;
        if let Some(endpoint) = self.model.endpoints.get(&handed.claim.endpoint) {
            let policy = RetryPolicy::from(&endpoint.settings);
            report.verdict = decide(handed.cycle_attempts, &outcome, policy, 0.5).verdict;
        }
        Report { outcome, ..report }
    }

    fn delivery(
        &self,
        place: Place,
        is_meant: impl Fn(&ModelDelivery) -> bool,
    ) -> Option<DeliveryId> {
        at(&self.model.first_those(is_meant), place)
    }

    fn age(
        &mut self,
        place: Place,
        age: Age,
        is_meant: impl Fn(&ModelDelivery) -> bool,
    ) -> Option<Step> {
        let id = self.delivery(place, &is_meant)?;
        // No two leases end at the same instant: which of them is claimed first is not promised.
        self.agings += 1;
        let by = match age {
            // Every other one ended longer ago than the retention time.
            Age::Lease => {
                let long_ago = Duration::from_hours(40 * 24 * u64::from(self.agings % 2));
                long_ago + Duration::from_mins(5 + u64::from(self.agings))
            }
            Age::Due => Duration::from_hours(40 * 24),
            Age::Lapses => Duration::from_hours(25),
        };
        self.model.deliveries.get(&id).is_some_and(is_meant).then_some(Step::Age(id, age, by))
    }

    fn resend(&mut self, place: Place, key: Option<u8>) -> anyhow::Result<Option<Step>> {
        let Some(id) = self.delivery(place, |_| true) else { return Ok(None) };
        let key = key.map(|key| IdempotencyKey::parse(format!("k{key}").as_bytes())).transpose()?;
        let new = NewResend::new(domain::application::DEFAULT_APPLICATION_KEY, id, key);
        self.name(new.id.as_uuid(), 's');
        self.name(new.new_delivery.as_uuid(), 'd');
        Ok(Some(Step::Resend(new)))
    }
}

fn patch(change: Change) -> anyhow::Result<EndpointChange> {
    let hours = |hours: &[u64]| {
        RetrySchedule::new(hours.iter().map(|it| Duration::from_hours(*it)).collect())
    };
    let mut settings = SettingsChange::default();
    let mut enabled = None;
    match change {
        Change::InFlightMax(max) => settings.in_flight_max = Some(max),
        Change::ShortSchedule => settings.retry_schedule = Some(hours(&[3])?),
        Change::LongSchedule => settings.retry_schedule = Some(hours(&[1, 2, 5])?),
        Change::Enabled(is) => enabled = Some(is),
        Change::CircuitBreaker(is) => settings.circuit_breaker = Some(is),
    }
    Ok(EndpointChange { settings, enabled, ..EndpointChange::default() })
}

/// One line, with ids in full: [`Case::named`] replaces them.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accept(new) => {
                write!(f, "accept")?;
                for it in new {
                    let key = it.idempotency_key.as_ref().map_or("no key", |key| key.as_str());
                    write!(f, " {} with {} for {} ({key}, ", it.id, it.delivery, it.endpoint)?;
                    write!(f, "{})", String::from_utf8_lossy(&it.payload))?;
                }
                Ok(())
            }
            Self::Claim(it) => {
                write!(f, "claim {} of {} at most each of", it.token, it.per_endpoint)?;
                it.endpoints.iter().try_for_each(|key| write!(f, " {key}"))?;
                write!(f, ", {} in all{}", it.total, if it.sweep { ", sweeping" } else { "" })
            }
            Self::FindDue => write!(f, "find what is due"),
            Self::Record(reports) => {
                write!(f, "record")?;
                reports.iter().try_for_each(|it| {
                    write!(f, " {} of {}: {:?}", it.token, it.delivery, it.verdict)
                })
            }
            Self::GiveBack(claims) => {
                write!(f, "give back")?;
                claims.iter().try_for_each(|it| write!(f, " {} of {}", it.token, it.delivery))
            }
            Self::Age(id, age, by) => write!(f, "age {id}: {age:?} by {} min", by.as_secs() / 60),
            Self::AgeLife(key, age) => write!(f, "age {key}: {age:?}"),
            Self::ExpireKey((endpoint, key)) => write!(f, "end the time of {key} of {endpoint}"),
            Self::Replay(id) => write!(f, "replay {id}"),
            Self::Cancel(id) => write!(f, "cancel {id}"),
            Self::Erase(id) => write!(f, "erase {id}"),
            Self::Resend(it) => {
                let key = it.idempotency_key.as_ref().map_or("no key", |key| key.as_str());
                write!(f, "resend {} as {} with {} ({key})", it.delivery, it.id, it.new_delivery)
            }
            Self::Patch(key, it) => {
                let settings = &it.settings;
                write!(f, "patch {key}: enabled {:?}, ", it.enabled)?;
                write!(f, "{:?}, {:?}, ", settings.in_flight_max, settings.retry_schedule)?;
                write!(f, "circuit breaker {:?}", settings.circuit_breaker)
            }
            Self::Pause(key) => write!(f, "pause {key}"),
            Self::Enable(key) => write!(f, "enable {key}"),
            Self::Disable(key, version) => write!(f, "disable {key} of version {version}"),
            Self::Delete(key) => write!(f, "delete {key}"),
            Self::Maintain(upkeep) => write!(f, "maintain: {upkeep:?}"),
        }
    }
}
