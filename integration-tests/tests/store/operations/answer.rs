//! The answer to a step, from the model and from a store, in one form.

use std::collections::BTreeMap;

use anyhow::ensure;
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::delivery::CancelReason;
use domain::endpoint::DisabledCause;
use domain::id::{DeliveryId, EndpointKey, PublicId, SubmissionId};
use store::Store;
use store::delivery::{
    Cancellation, ClaimBatch, ClaimRequest, DueQuery, Recording, Replay, Standing,
};
use store::endpoint::{Endpoint, EndpointUpdate, Pause};
use store::submission::{self, Acceptance, Resend};
use time::OffsetDateTime;

use super::model::Model;
use super::model::claim::{Taken, kind_number};
use super::model::endpoints::Changed;
use super::model::submissions::Accepted;
use super::operation::Upkeep;
use super::rows::Rows;
use super::step::{Claim, Step};

/// More than a case can have.
const ALL: u32 = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Accepted(Vec<Accepted>),
    Claimed(Vec<Taken>, Vec<(EndpointKey, Standing)>),
    Due(Vec<EndpointKey>),
    Recorded(Vec<Recording>),
    GivenBack(Vec<DeliveryId>),
    Aged,
    Replayed(Replay),
    Cancelled(Cancellation),
    Erased(bool),
    Changed(Option<Changed>),
    Disabled(bool),
    Deleted(bool),
    Maintained(u64),
}

impl Model {
    pub(crate) fn answer(&mut self, step: &Step) -> Answer {
        match step {
            Step::Accept(new) => Answer::Accepted(self.accept(new)),
            Step::Claim(it) => {
                let bounds = (it.per_endpoint, it.total);
                let (taken, standings) = self.claim(&it.endpoints, bounds, it.token);
                Answer::Claimed(taken, standings)
            }
            Step::FindDue => Answer::Due(self.find_due()),
            Step::Record(reports) => Answer::Recorded(self.record(reports)),
            Step::GiveBack(claims) => Answer::GivenBack(sorted(self.give_back(claims))),
            Step::Age(id, age, by) => {
                self.age(*id, *age, *by);
                Answer::Aged
            }
            Step::AgeLife(key, age) => {
                self.age_life(*key, *age);
                Answer::Aged
            }
            Step::ExpireKey(scoped) => {
                self.expire_key(scoped);
                Answer::Aged
            }
            Step::Replay(id) => Answer::Replayed(self.replay(*id)),
            Step::Cancel(id) => Answer::Cancelled(self.cancel(*id, CancelReason::Operator)),
            Step::Erase(id) => Answer::Erased(self.erase(*id)),
            Step::Resend(new) => Answer::Accepted(vec![self.resend(new)]),
            Step::Patch(key, change) => Answer::Changed(self.patch(*key, change)),
            Step::Pause(key) => Answer::Changed(self.change(*key, |it| it.paused = true)),
            Step::Enable(key) => Answer::Changed(self.enable(*key)),
            Step::Disable(key, version) => Answer::Disabled(self.disable(*key, *version)),
            Step::Delete(key) => Answer::Deleted(self.delete(*key)),
            Step::Maintain(upkeep) => Answer::Maintained(self.maintain(*upkeep)),
        }
    }
}

/// A store under test, and what it has told so far.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) rows: &'a mut Rows,
    pub(crate) received_at: BTreeMap<SubmissionId, OffsetDateTime>,
}

impl Subject<'_> {
    pub(crate) async fn answer(&mut self, step: &Step) -> anyhow::Result<Answer> {
        let (store, application) = (self.store, DEFAULT_APPLICATION_KEY);
        Ok(match step {
            Step::Accept(new) => {
                let answers = store.accept(new).await?;
                ensure!(answers.len() == new.len(), "{} answers", answers.len());
                let accepted: anyhow::Result<Vec<Accepted>> =
                    answers.into_iter().map(|it| self.accepted(it)).collect();
                Answer::Accepted(accepted?)
            }
            Step::Claim(claim) => claimed(&store.claim_due(&request(claim)).await?),
            Step::FindDue => {
                let query = DueQuery { after: None, limit: ALL, sweep: false };
                Answer::Due(store.find_due_endpoints(query).await?)
            }
            Step::Record(reports) => Answer::Recorded(store.record_attempts(reports).await?),
            Step::GiveBack(claims) => Answer::GivenBack(sorted(store.give_back(claims).await?)),
            Step::Age(id, age, by) => {
                self.rows.age(*id, *age, *by).await?;
                Answer::Aged
            }
            Step::AgeLife(key, age) => {
                self.rows.age_life(*key, *age).await?;
                Answer::Aged
            }
            Step::ExpireKey((endpoint, key)) => {
                self.rows.expire_key(*endpoint, key).await?;
                Answer::Aged
            }
            Step::Replay(id) => Answer::Replayed(store.replay_failed(application, *id).await?),
            Step::Cancel(id) => Answer::Cancelled(store.cancel_delivery(application, *id).await?),
            Step::Erase(id) => Answer::Erased(store.erase_payload(application, *id).await?),
            Step::Resend(new) => {
                let resent = store.resend(new).await?;
                Answer::Accepted(vec![self.resent(resent)?])
            }
            Step::Patch(key, change) => {
                match store.update_endpoint(application, &id_of(*key), change).await? {
                    EndpointUpdate::Updated { endpoint, .. } => changed(Some(&endpoint)),
                    EndpointUpdate::Missing => changed(None),
                    EndpointUpdate::Invalid(error) => return Err(error.into()),
                }
            }
            Step::Pause(key) => {
                let pause = Pause::ForGood;
                changed(store.pause_endpoint(application, &id_of(*key), pause).await?.as_ref())
            }
            Step::Enable(key) => {
                changed(store.enable_endpoint(application, &id_of(*key)).await?.as_ref())
            }
            Step::Disable(key, version) => {
                let disabled = store.disable_endpoint(*key, *version, DisabledCause::Gone).await?;
                Answer::Disabled(disabled)
            }
            Step::Delete(key) => {
                Answer::Deleted(store.delete_endpoint(application, &id_of(*key)).await?)
            }
            Step::Maintain(upkeep) => Answer::Maintained(maintain(store, *upkeep).await?),
        })
    }

    fn accepted(&mut self, answer: Acceptance) -> anyhow::Result<Accepted> {
        Ok(match answer {
            Acceptance::Accepted(it) => self.ids(&it, Accepted::Stored)?,
            Acceptance::Replayed(it) => self.ids(&it, Accepted::Replayed)?,
            Acceptance::Conflicted => Accepted::Conflicted,
            Acceptance::KeyInProgress => Accepted::KeyInProgress,
            Acceptance::EndpointMissing => Accepted::EndpointMissing,
        })
    }

    fn resent(&mut self, answer: Resend) -> anyhow::Result<Accepted> {
        Ok(match answer {
            Resend::Accepted(it) => self.ids(&it.accepted, Accepted::Stored)?,
            Resend::Replayed(it) => self.ids(&it.accepted, Accepted::Replayed)?,
            Resend::Conflicted => Accepted::Conflicted,
            Resend::KeyInProgress => Accepted::KeyInProgress,
            Resend::EndpointDisabled => Accepted::EndpointDisabled,
            Resend::PayloadErased => Accepted::PayloadErased,
            Resend::PayloadExpired => Accepted::PayloadExpired,
            Resend::Missing => Accepted::Missing,
        })
    }

    /// Whoever is told of a submission is told the same time.
    fn ids(
        &mut self,
        it: &submission::Accepted,
        as_what: fn(SubmissionId, DeliveryId) -> Accepted,
    ) -> anyhow::Result<Accepted> {
        let first = *self.received_at.entry(it.submission).or_insert(it.received_at);
        ensure!(
            first == it.received_at,
            "{} was received at {first}, and now at {}",
            it.submission,
            it.received_at
        );
        ensure!(it.deliveries.len() == 1, "{} deliveries", it.deliveries.len());
        Ok(as_what(it.submission, it.deliveries[0]))
    }
}

fn id_of(endpoint: EndpointKey) -> PublicId {
    PublicId::of_endpoint(endpoint)
}

fn request(claim: &Claim) -> ClaimRequest<'_> {
    ClaimRequest {
        endpoints: &claim.endpoints,
        per_endpoint: claim.per_endpoint,
        total: claim.total,
        worker: crate::fixture::WORKER,
        token: claim.token,
        sweep: claim.sweep,
    }
}

fn claimed(batch: &ClaimBatch) -> Answer {
    let owned = batch.claimed.iter().map(|it| Taken {
        delivery: it.delivery,
        kind: kind_number(it.kind),
        attempts: Some(it.attempts),
        cycle_attempts: Some(it.cycle_attempts),
        lapses: it.lapses,
    });
    let set_aside = batch.set_aside.iter().map(|it| Taken {
        delivery: it.delivery,
        kind: kind_number(it.kind),
        attempts: None,
        cycle_attempts: None,
        lapses: it.lapses,
    });
    let mut standings = batch.endpoints.clone();
    standings.sort_unstable_by_key(|(key, _)| *key);
    Answer::Claimed(sorted(owned.chain(set_aside).collect()), standings)
}

fn changed(endpoint: Option<&Endpoint>) -> Answer {
    Answer::Changed(endpoint.map(|it| Changed {
        disabled: it.disabled,
        paused: it.paused_until.is_some(),
        version: it.version,
        in_flight_max: it.settings.in_flight_max(),
    }))
}

async fn maintain(store: &dyn Store, upkeep: Upkeep) -> anyhow::Result<u64> {
    Ok(match upkeep {
        Upkeep::CancelDeleted => store.cancel_deleted(ALL).await?,
        Upkeep::CancelRequested => store.cancel_requested(ALL).await?,
        Upkeep::FailHeld => store.fail_held(ALL).await?,
        Upkeep::ExpireFailed => store.expire_failed(ALL).await?,
        Upkeep::ExpireKeys => store.expire_keys(ALL).await?,
        Upkeep::RecountSlots => {
            let recount = store.recount_slots(None, ALL).await?;
            recount.mended + recount.made
        }
        Upkeep::DisableFailing => u64::try_from(store.disable_failing(ALL).await?.len())?,
    })
}

fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort_unstable();
    all
}
