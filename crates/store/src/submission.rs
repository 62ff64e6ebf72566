//! Submissions as they are stored.

use bytes::Bytes;
use domain::id::{ApplicationKey, DeliveryId, EndpointKey, SubmissionId};
use domain::submission::{ContentType, EventType, Fingerprint, IdempotencyKey};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::new_id::{unix_millis_now, uuid_beside, uuid_of_millis};
use crate::{CreatedWindow, Page};

/// A submission to be accepted, with the ids that it and its delivery will have.
///
/// Ids are made before the first try, so that a repeated try is recognised as the same.
#[derive(Debug, Clone)]
pub struct NewSubmission {
    /// Its id.
    pub id: SubmissionId,
    /// Its delivery's id, of the same millisecond: both lie in partitions of the same day.
    pub delivery: DeliveryId,
    /// The receiver's `webhook-id`: its own id, unless it is a resend.
    pub webhook_id: Uuid,
    /// To which endpoint it goes; also the scope of the key.
    pub endpoint: EndpointKey,
    /// Under which it is accepted once.
    pub idempotency_key: Option<IdempotencyKey>,
    /// What the key stands for.
    pub fingerprint: Fingerprint,
    /// What happened.
    pub event_type: Option<EventType>,
    /// The type of the payload.
    pub content_type: ContentType,
    /// The bytes that are signed and sent.
    pub payload: Bytes,
}

impl NewSubmission {
    /// A submission with fresh ids.
    #[must_use]
    pub fn new(
        endpoint: EndpointKey,
        idempotency_key: Option<IdempotencyKey>,
        event_type: Option<EventType>,
        content_type: ContentType,
        payload: Bytes,
    ) -> Self {
        let millis = unix_millis_now();
        let id = uuid_of_millis(millis);
        let event = event_type.as_ref().map(EventType::as_str);
        let fingerprint =
            Fingerprint::of(&endpoint.as_uuid(), event, content_type.as_str(), &payload);
        Self {
            id: SubmissionId::from_uuid(id),
            delivery: DeliveryId::from_uuid(uuid_of_millis(millis)),
            webhook_id: id,
            endpoint,
            idempotency_key,
            fingerprint,
            event_type,
            content_type,
            payload,
        }
    }

    /// The same under this `UUIDv7`, which whoever brings it has made.
    #[must_use]
    pub fn under(self, id: Uuid) -> Self {
        let delivery = DeliveryId::from_uuid(uuid_beside(id));
        Self { id: SubmissionId::from_uuid(id), delivery, webhook_id: id, ..self }
    }
}

/// What became of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acceptance {
    /// It is stored, and its delivery is owed.
    Accepted(Accepted),
    /// The same submission was accepted before under this key: that one's answer.
    Replayed(Accepted),
    /// The key stands for other content. Nothing of that is told.
    Conflicted,
    /// Another open transaction holds the key: its fate is not known yet.
    KeyInProgress,
    /// The endpoint does not exist, or is deleted.
    EndpointMissing,
}

/// A delivery whose submission is to be sent once more, as a new one with these ids.
#[derive(Debug, Clone)]
pub struct NewResend {
    /// Whose delivery it is.
    pub application: ApplicationKey,
    /// What is resent.
    pub delivery: DeliveryId,
    /// The id of the new submission.
    pub id: SubmissionId,
    /// The id of its delivery, of the same millisecond.
    pub new_delivery: DeliveryId,
    /// Under which it is accepted once.
    pub idempotency_key: Option<IdempotencyKey>,
}

impl NewResend {
    /// A resend with fresh ids.
    #[must_use]
    pub fn new(
        application: ApplicationKey,
        delivery: DeliveryId,
        idempotency_key: Option<IdempotencyKey>,
    ) -> Self {
        let millis = unix_millis_now();
        Self {
            application,
            delivery,
            id: SubmissionId::from_uuid(uuid_of_millis(millis)),
            new_delivery: DeliveryId::from_uuid(uuid_of_millis(millis)),
            idempotency_key,
        }
    }

    /// The same under this `UUIDv7`, which whoever asks for it has made.
    #[must_use]
    pub fn under(self, id: Uuid) -> Self {
        let new_delivery = DeliveryId::from_uuid(uuid_beside(id));
        Self { id: SubmissionId::from_uuid(id), new_delivery, ..self }
    }
}

impl NewResend {
    /// What its idempotency key is compared by.
    pub(crate) fn keyed(&self, endpoint: EndpointKey, resend_of: SubmissionId) -> NewSubmission {
        NewSubmission {
            id: self.id,
            delivery: self.new_delivery,
            webhook_id: self.id.as_uuid(),
            endpoint,
            idempotency_key: self.idempotency_key.clone(),
            fingerprint: Fingerprint::of_resend(&endpoint.as_uuid(), &resend_of.as_uuid()),
            event_type: None,
            content_type: ContentType::default(),
            payload: Bytes::new(),
        }
    }
}

/// What became of a resend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resend {
    /// It is stored, and its delivery is owed.
    Accepted(Resent),
    /// The same resend was accepted before under this key: that one's answer.
    Replayed(Resent),
    /// The key stands for something else. Nothing of that is told.
    Conflicted,
    /// Another open transaction holds the key: its fate is not known yet.
    KeyInProgress,
    /// The endpoint is disabled or deleted.
    EndpointDisabled,
    /// The payload was erased: there is nothing to send.
    PayloadErased,
    /// The payload is no longer kept: there is nothing to send.
    PayloadExpired,
    /// There is no such delivery.
    Missing,
}

/// The answer to an accepted resend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resent {
    /// The new submission.
    pub accepted: Accepted,
    /// The endpoint's name in URLs.
    pub endpoint_id: String,
    /// The submission that it resends.
    pub resend_of: SubmissionId,
}

/// The answer to an accepted submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The submission.
    pub submission: SubmissionId,
    /// Its deliveries.
    pub deliveries: Vec<DeliveryId>,
    /// When it was accepted, on the database's clock.
    pub received_at: OffsetDateTime,
}

/// A stored submission, without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// Its id.
    pub id: SubmissionId,
    /// The `webhook-id` that its requests carry.
    pub webhook_id: Uuid,
    /// The submission that it resends, if it is a resend.
    pub resend_of: Option<SubmissionId>,
    /// The endpoint's internal identity.
    pub endpoint: EndpointKey,
    /// The endpoint's name in URLs.
    pub endpoint_id: String,
    /// Its deliveries.
    pub deliveries: Vec<DeliveryId>,
    /// What happened.
    pub event_type: Option<String>,
    /// The type of the payload.
    pub content_type: String,
    /// Length of the payload, in bytes, also after it was erased.
    pub payload_bytes: u64,
    /// When the payload was erased, if it was.
    pub erased_at: Option<OffsetDateTime>,
    /// When it was accepted, on the database's clock.
    pub received_at: OffsetDateTime,
}

/// Which submissions to list, newest first.
#[derive(Debug, Clone, Copy)]
pub struct SubmissionFilter {
    /// Of which application.
    pub application: ApplicationKey,
    /// Of one endpoint only.
    pub endpoint: Option<EndpointKey>,
    /// Created in this time only.
    pub created: CreatedWindow,
    /// Which part of the list.
    pub page: Page,
}

/// What a worker sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// Of which submission.
    pub submission: SubmissionId,
    /// The `webhook-id` that the request carries.
    pub webhook_id: Uuid,
    /// The type of the payload.
    pub content_type: String,
    /// The bytes as they were accepted.
    pub payload: Bytes,
}
