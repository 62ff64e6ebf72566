//! The one interface of the api and the worker to a database.

use async_trait::async_trait;
use domain::endpoint::DisabledCause;
use domain::health::Backlog;
use domain::id::{ApplicationKey, DeliveryId, EndpointKey, PublicId, SubmissionId, uuid_floor};
use domain::signing::Ed25519PublicKey;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::admission::Admissions;
use crate::api_key::{ApiKey, ApiKeyDigest, ApiKeyView, NewApiKey, Revocation};
use crate::application::{Application, ApplicationCreation, NewApplication};
use crate::delivery::{
    Cancellation, ClaimBatch, ClaimRequest, DeliveryDetail, DeliveryFilter, DeliveryView, DueQuery,
    HeldClaim, Recording, Replay, Report,
};
use crate::endpoint::{
    Endpoint, EndpointChange, EndpointCreation, EndpointUpdate, NewEndpoint, Pause, Target,
};
use crate::error::StoreError;
use crate::hold::Holds;
use crate::life::Lives;
use crate::maintenance::Maintenance;
use crate::operational::OperationalEvents;
use crate::secret::{NewRotation, Resealing, Rotation};
use crate::source::Sources;
use crate::submission::{
    Acceptance, NewResend, NewSubmission, Payload, Resend, Submission, SubmissionFilter,
};
use crate::wake_up::{DueSignal, Listening};

/// Which part of a list.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// At most this many rows.
    pub limit: u16,
    /// Only rows whose id is lower than this.
    pub before: Option<Uuid>,
}

/// Which rows of a list by when they were created: by the milliseconds in their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CreatedWindow {
    /// Only rows whose id is this or higher.
    pub from: Option<Uuid>,
    /// Only rows whose id is lower than this.
    pub below: Option<Uuid>,
}

impl CreatedWindow {
    /// The rows created at `after` or later and earlier than `before`.
    #[must_use]
    pub fn of(after: Option<OffsetDateTime>, before: Option<OffsetDateTime>) -> Self {
        // An id knows whole milliseconds: a row is there when its millisecond begins.
        let floor = |at: OffsetDateTime| {
            let nanos = at.unix_timestamp_nanos();
            let millis = nanos.div_euclid(1_000_000) + i128::from(nanos.rem_euclid(1_000_000) > 0);
            uuid_floor(u64::try_from(millis).unwrap_or(0))
        };
        Self { from: after.map(floor), below: before.map(floor) }
    }

    /// What every id is at least.
    pub(crate) fn lowest(self) -> Uuid {
        self.from.unwrap_or(Uuid::nil())
    }

    /// What every id of that page is lower than.
    pub(crate) fn below(self, page: Page) -> Uuid {
        let bounds = [self.below, page.before];
        bounds.into_iter().flatten().min().unwrap_or(Uuid::max())
    }
}

/// A database that holds all state and settles every race.
///
/// Each call is one transaction. No call holds a lock or a connection when it returns. A future that
/// is dropped leaves no transaction open.
#[async_trait]
pub trait Store:
    Admissions
    + Maintenance
    + Sources
    + Holds
    + Lives
    + OperationalEvents
    + std::fmt::Debug
    + Send
    + Sync
    + 'static
{
    /// How many writers the database lets work at once.
    fn writers_max(&self) -> usize {
        usize::MAX
    }

    /// Raised in this process when something may be due.
    fn due_signal(&self) -> &DueSignal;

    /// Tells workers, in this process and in others, that something is due at these endpoints, or
    /// anywhere if there are none. To be called after the commit, never in a transaction; not often.
    async fn notify_due(&self, endpoints: &[EndpointKey]) -> Result<(), StoreError>;

    /// Raises the signal of this process when another tells that something is due, until that cannot
    /// be heard any more.
    async fn listen(&self) -> Result<Listening, StoreError>;

    /// Reaches the database and compares its schema with this build.
    async fn check(&self) -> Result<(), StoreError>;

    /// Stores a key's digest.
    async fn create_api_key(&self, key: &NewApiKey) -> Result<ApiKeyView, StoreError>;

    /// The live keys with these digests, in their order. A key bound to a deleted application is not
    /// live.
    async fn find_api_keys(
        &self,
        digests: &[ApiKeyDigest],
    ) -> Result<Vec<Option<ApiKey>>, StoreError>;

    /// The live key with this digest.
    async fn find_api_key(&self, digest: &ApiKeyDigest) -> Result<Option<ApiKey>, StoreError> {
        Ok(self.find_api_keys(std::slice::from_ref(digest)).await?.pop().flatten())
    }

    /// Whether any live key exists.
    async fn has_api_keys(&self) -> Result<bool, StoreError>;

    /// Keys, revoked ones included, newest first: those bound to that application, or all.
    async fn list_api_keys(
        &self,
        application: Option<ApplicationKey>,
        page: Page,
    ) -> Result<Vec<ApiKeyView>, StoreError>;

    /// Revokes a key: one bound to that application, or any. Never the last live admin key that is
    /// bound to none.
    async fn revoke_api_key(
        &self,
        application: Option<ApplicationKey>,
        id: Uuid,
    ) -> Result<Revocation, StoreError>;

    /// Notes that a key is used now, unless a use within the last hour is noted. Answers whether.
    async fn note_api_key_use(&self, id: Uuid) -> Result<bool, StoreError>;

    /// Creates an application.
    async fn create_application(
        &self,
        application: &NewApplication,
    ) -> Result<ApplicationCreation, StoreError>;

    /// Live applications, newest first: only that one, or all.
    async fn list_applications(
        &self,
        only: Option<ApplicationKey>,
        page: Page,
    ) -> Result<Vec<Application>, StoreError>;

    /// The live application with this id.
    async fn find_application(&self, id: &PublicId) -> Result<Option<ApplicationKey>, StoreError>;

    /// Creates an endpoint together with its schedule row and its sealed secrets.
    async fn create_endpoint(&self, endpoint: &NewEndpoint)
    -> Result<EndpointCreation, StoreError>;

    /// The live endpoints with these ids in these applications, in their order.
    async fn find_endpoints(
        &self,
        ids: &[(ApplicationKey, PublicId)],
    ) -> Result<Vec<Option<Endpoint>>, StoreError>;

    /// The live endpoint of that application with this id.
    async fn find_endpoint(
        &self,
        application: ApplicationKey,
        id: &PublicId,
    ) -> Result<Option<Endpoint>, StoreError> {
        Ok(self.find_endpoints(&[(application, id.clone())]).await?.pop().flatten())
    }

    /// The live endpoints of an application, newest first.
    async fn list_endpoints(
        &self,
        application: ApplicationKey,
        page: Page,
    ) -> Result<Vec<Endpoint>, StoreError>;

    /// Changes what the change names of the live endpoint with this id, and leaves the rest. Changes of
    /// one endpoint happen one after another, and the last one stays.
    async fn update_endpoint(
        &self,
        application: ApplicationKey,
        id: &PublicId,
        change: &EndpointChange,
    ) -> Result<EndpointUpdate, StoreError>;

    /// Marks the live endpoint with this id as deleted. Answers whether there was one.
    async fn delete_endpoint(
        &self,
        application: ApplicationKey,
        id: &PublicId,
    ) -> Result<bool, StoreError>;

    /// Lets nothing be claimed of the live endpoint with this id until the pause is over.
    async fn pause_endpoint(
        &self,
        application: ApplicationKey,
        id: &PublicId,
        pause: Pause,
    ) -> Result<Option<Endpoint>, StoreError>;

    /// Enables the live endpoint with this id, whatever disabled it, and ends its pause.
    async fn enable_endpoint(
        &self,
        application: ApplicationKey,
        id: &PublicId,
    ) -> Result<Option<Endpoint>, StoreError>;
    /// The public half of an endpoint's newest live Ed25519 key.
    async fn read_public_key(
        &self,
        endpoint: EndpointKey,
    ) -> Result<Option<Ed25519PublicKey>, StoreError>;

    /// Gives an endpoint new secrets, and lets the old ones of the same schemes end.
    async fn rotate_secrets(&self, new: &NewRotation) -> Result<Rotation, StoreError>;

    /// Seals secrets with the current key that other keys have sealed: at most `limit` of those
    /// whose id is above `after`.
    async fn reseal_secrets(
        &self,
        after: Option<Uuid>,
        limit: u16,
    ) -> Result<Resealing, StoreError>;

    /// The same for the custom headers of endpoints, in the order of their keys.
    async fn reseal_headers(
        &self,
        after: Option<Uuid>,
        limit: u16,
    ) -> Result<Resealing, StoreError>;

    /// What a worker needs to send to these endpoints. Deleted ones are left out.
    async fn read_targets(&self, endpoints: &[EndpointKey]) -> Result<Vec<Target>, StoreError>;

    /// Disables an endpoint if its configuration is still of this version. Answers whether it was.
    async fn disable_endpoint(
        &self,
        endpoint: EndpointKey,
        version: i64,
        cause: DisabledCause,
    ) -> Result<bool, StoreError>;

    /// Stores each submission with its delivery, or says why not, in the order of the input.
    ///
    /// One transaction for all: on an error nothing is stored. Calling it again with the same ids is
    /// safe. Of equal keys in one call the first wins.
    async fn accept(&self, submissions: &[NewSubmission]) -> Result<Vec<Acceptance>, StoreError>;

    /// A submission of that application.
    async fn find_submission(
        &self,
        application: ApplicationKey,
        id: SubmissionId,
    ) -> Result<Option<Submission>, StoreError>;

    /// Submissions of an application, newest first.
    async fn list_submissions(
        &self,
        filter: SubmissionFilter,
    ) -> Result<Vec<Submission>, StoreError>;

    /// The payloads of these submissions, in no particular order. Missing ones are left out. The
    /// caller bounds the sum of their lengths.
    async fn read_payloads(
        &self,
        submissions: &[(EndpointKey, SubmissionId)],
    ) -> Result<Vec<Payload>, StoreError>;

    /// Endpoints that have something to claim, by key. A plain read: it locks nothing.
    async fn find_due_endpoints(&self, query: DueQuery) -> Result<Vec<EndpointKey>, StoreError>;

    /// What is due at open endpoints, counted up to
    /// [`BACKLOG_PER_ENDPOINT_MAX`](crate::delivery::BACKLOG_PER_ENDPOINT_MAX) for each. A plain read.
    async fn read_backlog(&self) -> Result<Backlog, StoreError>;

    /// Claims due deliveries, and what has lapsed.
    async fn claim_due(&self, request: &ClaimRequest<'_>) -> Result<ClaimBatch, StoreError>;

    /// Records the results of tries, in the order of the input.
    async fn record_attempts(&self, reports: &[Report]) -> Result<Vec<Recording>, StoreError>;

    /// Gives back claims that were not sent. Answers which were still held.
    async fn give_back(&self, claims: &[HeldClaim]) -> Result<Vec<DeliveryId>, StoreError>;

    /// Puts a failed delivery back into the queue.
    async fn replay_failed(
        &self,
        application: ApplicationKey,
        delivery: DeliveryId,
    ) -> Result<Replay, StoreError>;

    /// Cancels a delivery that is owed or replayable. One that a worker has is only marked.
    async fn cancel_delivery(
        &self,
        application: ApplicationKey,
        delivery: DeliveryId,
    ) -> Result<Cancellation, StoreError>;

    /// Stores the submission of a delivery once more, with a delivery of its own. The payload is
    /// copied inside the database.
    async fn resend(&self, resend: &NewResend) -> Result<Resend, StoreError>;

    /// Erases the payload of a submission, and cancels what is owed for it; what a worker has is
    /// marked. Answers whether there is such a submission. Doing it again changes nothing.
    async fn erase_payload(
        &self,
        application: ApplicationKey,
        submission: SubmissionId,
    ) -> Result<bool, StoreError>;

    /// A delivery of that application with its attempts.
    async fn find_delivery(
        &self,
        application: ApplicationKey,
        id: DeliveryId,
    ) -> Result<Option<DeliveryDetail>, StoreError>;

    /// Deliveries of an application, newest first.
    async fn list_deliveries(
        &self,
        filter: DeliveryFilter,
    ) -> Result<Vec<DeliveryView>, StoreError>;

    /// Deletes up to `batch` counters of windows that are over, and answers how many it deleted.
    /// Fewer than `batch` means that none is left.
    async fn sweep_rate_limits(&self, batch: u32) -> Result<u64, StoreError>;
}
