//! A real store whose calls can be made to fail: what a test says happens instead of the call, and
//! everything else is the store's.

mod beside;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use domain::endpoint::DisabledCause;
use domain::health::Backlog;
use domain::id::{ApplicationKey, DeliveryId, EndpointKey, PublicId, SubmissionId};
use domain::signing::Ed25519PublicKey;
use store::admission::{Admission, AdmissionRequest, Admissions, Budgets};
use store::api_key::{ApiKey, ApiKeyDigest, ApiKeyView, NewApiKey, Revocation};
use store::application::{Application, ApplicationCreation, NewApplication};
use store::delivery::{
    Cancellation, ClaimBatch, ClaimRequest, DeliveryDetail, DeliveryFilter, DeliveryView, DueQuery,
    HeldClaim, Recording, Replay, Report,
};
use store::endpoint::{
    Endpoint, EndpointChange, EndpointCreation, EndpointUpdate, NewEndpoint, Pause, Target,
};
use store::operational::{OperationalEndpoint, OperationalEvents, StoredEvent};
use store::rate_limit::{Reservation, Reserved};
use store::secret::{NewRotation, Resealing, Rotation};
use store::submission::{
    Acceptance, NewResend, NewSubmission, Payload, Resend, Submission, SubmissionFilter,
};
use store::wake_up::{DueSignal, Listening};
use store::{Page, Store, StoreError};
use uuid::Uuid;

type Answer<T> = Result<T, StoreError>;
type Fault = dyn Fn(&str, &[DeliveryId]) -> Answer<()> + Send + Sync;

/// A store with a fault.
pub(crate) struct FaultyStore {
    store: Arc<dyn Store>,
    fault: Box<Fault>,
}

impl FaultyStore {
    /// `fault` is asked before each call that a worker makes, with its name and its deliveries.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        fault: impl Fn(&str, &[DeliveryId]) -> Answer<()> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { store, fault: Box::new(fault) })
    }
}

/// The database cannot be reached.
pub(crate) fn unavailable() -> StoreError {
    StoreError::Unavailable { operation: "a test", source: "it is away".into() }
}

/// The database does not take this.
pub(crate) fn refused() -> StoreError {
    StoreError::Refused { operation: "a test", source: "it refuses".into() }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore").field("store", &self.store).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn due_signal(&self) -> &DueSignal {
        self.store.due_signal()
    }

    async fn notify_due(&self, endpoints: &[EndpointKey]) -> Answer<()> {
        self.store.notify_due(endpoints).await
    }

    async fn listen(&self) -> Answer<Listening> {
        self.store.listen().await
    }

    async fn check(&self) -> Answer<()> {
        (self.fault)("check", &[])?;
        self.store.check().await
    }

    async fn read_targets(&self, endpoints: &[EndpointKey]) -> Answer<Vec<Target>> {
        (self.fault)("read_targets", &[])?;
        self.store.read_targets(endpoints).await
    }

    async fn disable_endpoint(
        &self,
        endpoint: EndpointKey,
        version: i64,
        cause: DisabledCause,
    ) -> Answer<bool> {
        (self.fault)("disable_endpoint", &[])?;
        self.store.disable_endpoint(endpoint, version, cause).await
    }

    async fn read_payloads(&self, of: &[(EndpointKey, SubmissionId)]) -> Answer<Vec<Payload>> {
        (self.fault)("read_payloads", &[])?;
        self.store.read_payloads(of).await
    }

    async fn find_due_endpoints(&self, query: DueQuery) -> Answer<Vec<EndpointKey>> {
        (self.fault)("find_due_endpoints", &[])?;
        self.store.find_due_endpoints(query).await
    }

    async fn read_backlog(&self) -> Answer<Backlog> {
        self.store.read_backlog().await
    }

    async fn claim_due(&self, request: &ClaimRequest<'_>) -> Answer<ClaimBatch> {
        (self.fault)("claim_due", &[])?;
        self.store.claim_due(request).await
    }

    async fn record_attempts(&self, reports: &[Report]) -> Answer<Vec<Recording>> {
        let deliveries: Vec<DeliveryId> = reports.iter().map(|report| report.delivery).collect();
        (self.fault)("record_attempts", &deliveries)?;
        self.store.record_attempts(reports).await
    }

    async fn give_back(&self, claims: &[HeldClaim]) -> Answer<Vec<DeliveryId>> {
        let deliveries: Vec<DeliveryId> = claims.iter().map(|claim| claim.delivery).collect();
        (self.fault)("give_back", &deliveries)?;
        self.store.give_back(claims).await
    }

    async fn sweep_rate_limits(&self, batch: u32) -> Answer<u64> {
        (self.fault)("sweep_rate_limits", &[])?;
        self.store.sweep_rate_limits(batch).await
    }

    // What a worker does not call.

    async fn create_api_key(&self, key: &NewApiKey) -> Answer<ApiKeyView> {
        self.store.create_api_key(key).await
    }

    async fn find_api_keys(&self, digests: &[ApiKeyDigest]) -> Answer<Vec<Option<ApiKey>>> {
        self.store.find_api_keys(digests).await
    }

    async fn has_api_keys(&self) -> Answer<bool> {
        self.store.has_api_keys().await
    }

    async fn list_api_keys(
        &self,
        application: Option<ApplicationKey>,
        page: Page,
    ) -> Answer<Vec<ApiKeyView>> {
        self.store.list_api_keys(application, page).await
    }

    async fn revoke_api_key(
        &self,
        application: Option<ApplicationKey>,
        id: Uuid,
    ) -> Answer<Revocation> {
        self.store.revoke_api_key(application, id).await
    }

    async fn note_api_key_use(&self, id: Uuid) -> Answer<bool> {
        self.store.note_api_key_use(id).await
    }

    async fn create_application(&self, new: &NewApplication) -> Answer<ApplicationCreation> {
        self.store.create_application(new).await
    }

    async fn list_applications(
        &self,
        only: Option<ApplicationKey>,
        page: Page,
    ) -> Answer<Vec<Application>> {
        self.store.list_applications(only, page).await
    }

    async fn find_application(&self, id: &PublicId) -> Answer<Option<ApplicationKey>> {
        self.store.find_application(id).await
    }

    async fn create_endpoint(&self, endpoint: &NewEndpoint) -> Answer<EndpointCreation> {
        self.store.create_endpoint(endpoint).await
    }

    async fn find_endpoints(
        &self,
        ids: &[(ApplicationKey, PublicId)],
    ) -> Answer<Vec<Option<Endpoint>>> {
        self.store.find_endpoints(ids).await
    }

    async fn list_endpoints(&self, of: ApplicationKey, page: Page) -> Answer<Vec<Endpoint>> {
        self.store.list_endpoints(of, page).await
    }

    async fn update_endpoint(
        &self,
        of: ApplicationKey,
        id: &PublicId,
        change: &EndpointChange,
    ) -> Answer<EndpointUpdate> {
        self.store.update_endpoint(of, id, change).await
    }

    async fn delete_endpoint(&self, of: ApplicationKey, id: &PublicId) -> Answer<bool> {
        self.store.delete_endpoint(of, id).await
    }

    async fn pause_endpoint(
        &self,
        of: ApplicationKey,
        id: &PublicId,
        pause: Pause,
    ) -> Answer<Option<Endpoint>> {
        self.store.pause_endpoint(of, id, pause).await
    }

    async fn enable_endpoint(&self, of: ApplicationKey, id: &PublicId) -> Answer<Option<Endpoint>> {
        self.store.enable_endpoint(of, id).await
    }

    async fn read_public_key(&self, of: EndpointKey) -> Answer<Option<Ed25519PublicKey>> {
        self.store.read_public_key(of).await
    }

    async fn rotate_secrets(&self, new: &NewRotation) -> Answer<Rotation> {
        self.store.rotate_secrets(new).await
    }

    async fn reseal_headers(&self, after: Option<Uuid>, limit: u16) -> Answer<Resealing> {
        self.store.reseal_headers(after, limit).await
    }
    async fn reseal_secrets(&self, after: Option<Uuid>, limit: u16) -> Answer<Resealing> {
        self.store.reseal_secrets(after, limit).await
    }

    async fn accept(&self, submissions: &[NewSubmission]) -> Answer<Vec<Acceptance>> {
        self.store.accept(submissions).await
    }

    async fn find_submission(
        &self,
        of: ApplicationKey,
        id: SubmissionId,
    ) -> Answer<Option<Submission>> {
        self.store.find_submission(of, id).await
    }

    async fn list_submissions(&self, filter: SubmissionFilter) -> Answer<Vec<Submission>> {
        self.store.list_submissions(filter).await
    }

    async fn replay_failed(&self, of: ApplicationKey, id: DeliveryId) -> Answer<Replay> {
        self.store.replay_failed(of, id).await
    }

    async fn cancel_delivery(&self, of: ApplicationKey, id: DeliveryId) -> Answer<Cancellation> {
        self.store.cancel_delivery(of, id).await
    }

    async fn resend(&self, resend: &NewResend) -> Answer<Resend> {
        self.store.resend(resend).await
    }

    async fn erase_payload(&self, of: ApplicationKey, id: SubmissionId) -> Answer<bool> {
        self.store.erase_payload(of, id).await
    }

    async fn find_delivery(
        &self,
        of: ApplicationKey,
        id: DeliveryId,
    ) -> Answer<Option<DeliveryDetail>> {
        self.store.find_delivery(of, id).await
    }

    async fn list_deliveries(&self, filter: DeliveryFilter) -> Answer<Vec<DeliveryView>> {
        self.store.list_deliveries(filter).await
    }
}

/// What comes in goes its own way too.
#[async_trait]
impl Admissions for FaultyStore {
    async fn admit(
        &self,
        requests: &[AdmissionRequest],
        budgets: Budgets,
    ) -> Answer<Vec<Admission>> {
        self.store.admit(requests, budgets).await
    }

    async fn reserve(&self, reservations: &[Reservation]) -> Answer<Vec<Reserved>> {
        self.store.reserve(reservations).await
    }
}

#[async_trait]
impl OperationalEvents for FaultyStore {
    async fn set_operational_endpoint(
        &self,
        endpoint: EndpointKey,
    ) -> Answer<Option<OperationalEndpoint>> {
        self.store.set_operational_endpoint(endpoint).await
    }

    async fn clear_operational_endpoint(&self) -> Answer<()> {
        self.store.clear_operational_endpoint().await
    }

    async fn read_operational_endpoint(&self) -> Answer<Option<OperationalEndpoint>> {
        self.store.read_operational_endpoint().await
    }

    async fn read_events(&self, limit: u32) -> Answer<Vec<StoredEvent>> {
        self.store.read_events(limit).await
    }

    async fn forget_events(&self, ids: &[Uuid]) -> Answer<u64> {
        (self.fault)("forget_events", &[])?;
        self.store.forget_events(ids).await
    }
}
