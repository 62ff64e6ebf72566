//! Submissions: what is accepted, resent and erased.

use domain::delivery::CancelReason;
use domain::id::{DeliveryId, EndpointKey, SubmissionId};
use domain::submission::{Fingerprint, IdempotencyKey};
use store::submission::{NewResend, NewSubmission};

use super::{Model, ModelDelivery, ModelKey, ModelSubmission, RETENTION};

/// An answer to a submission, without its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepted {
    Stored(SubmissionId, DeliveryId),
    Replayed(SubmissionId, DeliveryId),
    Conflicted,
    KeyInProgress,
    EndpointMissing,
    EndpointDisabled,
    PayloadErased,
    PayloadExpired,
    Missing,
}

/// What is to be stored.
struct New<'a> {
    endpoint: EndpointKey,
    id: SubmissionId,
    delivery: DeliveryId,
    key: Option<&'a IdempotencyKey>,
    fingerprint: Fingerprint,
}

impl Model {
    pub(crate) fn accept(&mut self, new: &[NewSubmission]) -> Vec<Accepted> {
        new.iter().map(|new| self.accept_one(new)).collect()
    }

    fn accept_one(&mut self, new: &NewSubmission) -> Accepted {
        if self.endpoints.get(&new.endpoint).is_none_or(|endpoint| endpoint.deleted) {
            return Accepted::EndpointMissing;
        }
        self.store(&New {
            endpoint: new.endpoint,
            id: new.id,
            delivery: new.delivery,
            key: new.idempotency_key.as_ref(),
            fingerprint: new.fingerprint,
        })
    }

    fn store(&mut self, new: &New<'_>) -> Accepted {
        if let Some(key) = new.key {
            let scoped = (new.endpoint, key.as_str().to_owned());
            match self.keys.get(&scoped).filter(|stored| stored.expires_at > self.now) {
                Some(stored) if stored.fingerprint != new.fingerprint => {
                    return Accepted::Conflicted;
                }
                Some(stored) if stored.submission != new.id => {
                    return Accepted::Replayed(stored.submission, stored.delivery);
                }
                Some(_) => return Accepted::Stored(new.id, new.delivery),
                None => {
                    let stored = ModelKey {
                        fingerprint: new.fingerprint,
                        submission: new.id,
                        delivery: new.delivery,
                        expires_at: self.now + RETENTION,
                    };
                    self.keys.insert(scoped, stored);
                }
            }
        }
        let (endpoint, delivery, now) = (new.endpoint, new.delivery, self.now);
        self.submissions.entry(new.id).or_insert_with(|| {
            let accepted = ModelDelivery::accepted(endpoint, new.id, now);
            self.deliveries.insert(delivery, accepted);
            ModelSubmission { delivery, erased: false }
        });
        Accepted::Stored(new.id, new.delivery)
    }

    pub(crate) fn resend(&mut self, resend: &NewResend) -> Accepted {
        let Some(it) = self.deliveries.get(&resend.delivery) else { return Accepted::Missing };
        let (endpoint, original) = (it.endpoint, it.submission);
        match self.submissions.get(&original) {
            None => return Accepted::PayloadExpired,
            Some(submission) if submission.erased => return Accepted::PayloadErased,
            Some(_) => {}
        }
        if !self.endpoints.get(&endpoint).is_some_and(super::ModelEndpoint::is_enabled) {
            return Accepted::EndpointDisabled;
        }
        self.store(&New {
            endpoint,
            id: resend.id,
            delivery: resend.new_delivery,
            key: resend.idempotency_key.as_ref(),
            fingerprint: Fingerprint::of_resend(&endpoint.as_uuid(), &original.as_uuid()),
        })
    }

    pub(crate) fn erase(&mut self, id: SubmissionId) -> bool {
        let Some(submission) = self.submissions.get_mut(&id) else { return false };
        submission.erased = true;
        let delivery = submission.delivery;
        self.cancel(delivery, CancelReason::PayloadErased);
        true
    }

    pub(crate) fn expire_key(&mut self, scoped: &(EndpointKey, String)) {
        if let Some(key) = self.keys.get_mut(scoped) {
            key.expires_at = self.now;
        }
    }
}
