//! The store on PostgreSQL 15 or later: the shared authority in production.
//!
//! Every operation is a single autocommit statement, or a few of them, each of which is right by
//! itself: no transaction is open between two of them, so a caller that goes away leaves nothing
//! behind. The rules that the statements follow stand in `docs/ARCHITECTURE.md`.

mod admission;
mod api_key;
mod application;
mod begin;
mod codec;
mod delivery;
mod doctor;
mod endpoint;
mod errors;
mod hold;
mod life;
mod maintenance;
mod operational;
mod pool;
mod rate_limit;
mod receipt;
mod retry;
mod schema;
mod source;
mod submission;
mod undropped;
mod wake_up;

use self::pool::Pool;
use self::submission::accept::KeyLimits;
use async_trait::async_trait;
use domain::endpoint::DisabledCause;
use domain::health::Backlog;
use domain::id::{ApplicationKey, DeliveryId, EndpointKey, PublicId, SubmissionId};
use domain::signing::Ed25519PublicKey;
use secrecy::ExposeSecret as _;
use uuid::Uuid;

use crate::api_key::{ApiKey, ApiKeyDigest, ApiKeyView, NewApiKey, Revocation};
use crate::application::{Application, ApplicationCreation, NewApplication};
use crate::delivery::{
    BACKLOG_PER_ENDPOINT_MAX, Cancellation, ClaimBatch, ClaimRequest, DeliveryDetail,
    DeliveryFilter, DeliveryView, DueQuery, HeldClaim, Recording, Replay, Report,
};
use crate::endpoint::{
    Endpoint, EndpointChange, EndpointCreation, EndpointUpdate, NewEndpoint, Pause, Target,
};
use crate::secret::{NewRotation, Resealing, Rotation};
use crate::submission::{
    Acceptance, NewResend, NewSubmission, Payload, Resend, Submission, SubmissionFilter,
};
use crate::wake_up::{DueSignal, Listening};
use crate::{Page, Store, StoreError, StoreOptions};

pub use begin::begin;
pub use pool::STABLE_PLANS;
pub use receipt::receive_once_in_tx;
pub use schema::grants::{DatabaseRole, DatabaseRoleError, Right, grant, grants};
pub use schema::migrate::migrate;
pub use schema::scratch::{ScratchDatabase, drop_scratch};
pub use submission::accept_in_tx::accept_in_tx;

/// The store on PostgreSQL.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    /// For the api's statements.
    general: Pool,
    /// For claim and record.
    dispatch: Pool,
    /// For the one connection that listens.
    listening: sqlx::PgPool,
    options: StoreOptions,
}

impl PostgresStore {
    /// Prepares the pools. It connects when it is used.
    pub fn open(url: &str, options: StoreOptions) -> Result<Self, StoreError> {
        let connect = pool::connect_options(url)?;
        let general = pool::general(connect.clone(), &options);
        let direct =
            options.listen_url.as_ref().map(|url| pool::connect_options(url.expose_secret()));
        let mut store = Self::with_general(general, connect, options);
        if let Some(direct) = direct.transpose()? {
            store.listening = pool::listening(direct, &store.options);
        }
        Ok(store)
    }

    /// Uses an application's pool for all but claim, record and listening, which need sessions of
    /// their own: those are opened where the pool's are, when they are used.
    ///
    /// The statements are written for READ COMMITTED and set no session up, so time-outs are those of
    /// the pool's sessions. One that is not answered within `statement_deadline` takes its connection
    /// with it.
    #[must_use]
    pub fn over(connections: sqlx::PgPool, options: StoreOptions) -> Self {
        let connect = pool::connect_options_of(&connections);
        let general = pool::bounded(connections, &options);
        Self::with_general(general, connect, options)
    }

    fn key_limits(&self) -> KeyLimits {
        let window = self.options.idempotency_window.min(self.options.retention);
        KeyLimits { window, wait: self.options.key_wait }
    }

    fn with_general(
        general: Pool,
        connect: sqlx::postgres::PgConnectOptions,
        options: StoreOptions,
    ) -> Self {
        Self {
            general,
            dispatch: pool::dispatch(connect.clone(), &options),
            listening: pool::listening(connect, &options),
            options,
        }
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn due_signal(&self) -> &DueSignal {
        &self.options.due_signal
    }

    async fn notify_due(&self, endpoints: &[EndpointKey]) -> Result<(), StoreError> {
        wake_up::notify_due::notify_due(&self.general, &self.options.due_signal, endpoints).await
    }

    async fn listen(&self) -> Result<Listening, StoreError> {
        let signal = &self.options.due_signal;
        wake_up::listen::listen(&self.listening, &self.general, signal).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        schema::check::check(&self.general).await
    }

    async fn create_api_key(&self, key: &NewApiKey) -> Result<ApiKeyView, StoreError> {
        api_key::create::create(&self.general, key).await
    }

    async fn find_api_keys(
        &self,
        digests: &[ApiKeyDigest],
    ) -> Result<Vec<Option<ApiKey>>, StoreError> {
        api_key::find::find(&self.general, digests).await
    }

    async fn has_api_keys(&self) -> Result<bool, StoreError> {
        api_key::has_any::has_any(&self.general).await
    }

    async fn list_api_keys(
        &self,
        application: Option<ApplicationKey>,
        page: Page,
    ) -> Result<Vec<ApiKeyView>, StoreError> {
        api_key::list::list(&self.general, application, page).await
    }

    async fn revoke_api_key(
        &self,
        application: Option<ApplicationKey>,
        id: Uuid,
    ) -> Result<Revocation, StoreError> {
        api_key::revoke::revoke(&self.general, application, id).await
    }

    async fn note_api_key_use(&self, id: Uuid) -> Result<bool, StoreError> {
        api_key::note_use::note_use(&self.general, id).await
    }

    async fn create_application(
        &self,
        application: &NewApplication,
    ) -> Result<ApplicationCreation, StoreError> {
        application::create::create(&self.general, application).await
    }

    async fn list_applications(
        &self,
        only: Option<ApplicationKey>,
        page: Page,
    ) -> Result<Vec<Application>, StoreError> {
        application::list::list(&self.general, only, page).await
    }

    async fn find_application(&self, id: &PublicId) -> Result<Option<ApplicationKey>, StoreError> {
        application::find::find(&self.general, id).await
    }

    async fn create_endpoint(
        &self,
        endpoint: &NewEndpoint,
    ) -> Result<EndpointCreation, StoreError> {
        endpoint::create::create(&self.general, &self.options.sealer, endpoint).await
    }

    async fn find_endpoints(
        &self,
        ids: &[(ApplicationKey, PublicId)],
    ) -> Result<Vec<Option<Endpoint>>, StoreError> {
        endpoint::find::find(&self.general, &self.options.sealer, ids).await
    }

    async fn list_endpoints(
        &self,
        application: ApplicationKey,
        page: Page,
    ) -> Result<Vec<Endpoint>, StoreError> {
        endpoint::list::list(&self.general, &self.options.sealer, application, page).await
    }

    async fn update_endpoint(
        &self,
        application: ApplicationKey,
        id: &PublicId,
        change: &EndpointChange,
    ) -> Result<EndpointUpdate, StoreError> {
        let sealer = &self.options.sealer;
        endpoint::update::update(&self.general, sealer, application, id, change).await
    }

    async fn delete_endpoint(
        &self,
        application: ApplicationKey,
        id: &PublicId,
    ) -> Result<bool, StoreError> {
        endpoint::delete::delete(&self.general, application, id).await
    }

    async fn pause_endpoint(
        &self,
        application: ApplicationKey,
        id: &PublicId,
        pause: Pause,
    ) -> Result<Option<Endpoint>, StoreError> {
        let sealer = &self.options.sealer;
        endpoint::pause::pause(&self.general, sealer, application, id, pause).await
    }

    async fn enable_endpoint(
        &self,
        application: ApplicationKey,
        id: &PublicId,
    ) -> Result<Option<Endpoint>, StoreError> {
        endpoint::enable::enable(&self.general, &self.options.sealer, application, id).await
    }

    async fn read_public_key(
        &self,
        endpoint: EndpointKey,
    ) -> Result<Option<Ed25519PublicKey>, StoreError> {
        endpoint::read_public_key::read_public_key(&self.general, &self.options.sealer, endpoint)
            .await
    }

    async fn rotate_secrets(&self, new: &NewRotation) -> Result<Rotation, StoreError> {
        endpoint::rotate_secrets::rotate_secrets(&self.general, &self.options.sealer, new).await
    }

    async fn reseal_secrets(
        &self,
        after: Option<Uuid>,
        limit: u16,
    ) -> Result<Resealing, StoreError> {
        endpoint::reseal_secrets::reseal_secrets(&self.general, &self.options.sealer, after, limit)
            .await
    }

    async fn reseal_headers(
        &self,
        after: Option<Uuid>,
        limit: u16,
    ) -> Result<Resealing, StoreError> {
        endpoint::reseal_headers::reseal_headers(&self.general, &self.options.sealer, after, limit)
            .await
    }

    async fn read_targets(&self, endpoints: &[EndpointKey]) -> Result<Vec<Target>, StoreError> {
        endpoint::read_targets::read_targets(&self.dispatch, &self.options.sealer, endpoints).await
    }

    async fn disable_endpoint(
        &self,
        endpoint: EndpointKey,
        version: i64,
        cause: DisabledCause,
    ) -> Result<bool, StoreError> {
        endpoint::disable::disable(&self.dispatch, endpoint, version, cause).await
    }

    async fn accept(&self, submissions: &[NewSubmission]) -> Result<Vec<Acceptance>, StoreError> {
        submission::accept::accept(&self.general, self.key_limits(), submissions).await
    }

    async fn find_submission(
        &self,
        application: ApplicationKey,
        id: SubmissionId,
    ) -> Result<Option<Submission>, StoreError> {
        submission::find::find(&self.general, application, id).await
    }

    async fn list_submissions(
        &self,
        filter: SubmissionFilter,
    ) -> Result<Vec<Submission>, StoreError> {
        submission::list::list(&self.general, filter).await
    }

    async fn read_payloads(
        &self,
        submissions: &[(EndpointKey, SubmissionId)],
    ) -> Result<Vec<Payload>, StoreError> {
        submission::read_payloads::read_payloads(&self.dispatch, submissions).await
    }

    async fn find_due_endpoints(&self, query: DueQuery) -> Result<Vec<EndpointKey>, StoreError> {
        delivery::find_due_endpoints::find_due_endpoints(&self.dispatch, query).await
    }

    async fn read_backlog(&self) -> Result<Backlog, StoreError> {
        delivery::read_backlog::read_backlog(&self.dispatch, BACKLOG_PER_ENDPOINT_MAX).await
    }

    async fn claim_due(&self, request: &ClaimRequest<'_>) -> Result<ClaimBatch, StoreError> {
        delivery::claim_due::claim_due(&self.dispatch, self.options.retention, request).await
    }

    async fn record_attempts(&self, reports: &[Report]) -> Result<Vec<Recording>, StoreError> {
        delivery::record_attempts::record_attempts(&self.dispatch, self.options.retention, reports)
            .await
    }

    async fn give_back(&self, claims: &[HeldClaim]) -> Result<Vec<DeliveryId>, StoreError> {
        delivery::give_back::give_back(&self.dispatch, claims).await
    }

    async fn replay_failed(
        &self,
        application: ApplicationKey,
        delivery: DeliveryId,
    ) -> Result<Replay, StoreError> {
        delivery::replay_failed::replay_failed(&self.general, application, delivery).await
    }

    async fn cancel_delivery(
        &self,
        application: ApplicationKey,
        delivery: DeliveryId,
    ) -> Result<Cancellation, StoreError> {
        delivery::cancel::cancel(&self.general, application, delivery).await
    }

    async fn resend(&self, resend: &NewResend) -> Result<Resend, StoreError> {
        submission::resend::resend(&self.general, self.key_limits(), resend).await
    }

    async fn erase_payload(
        &self,
        application: ApplicationKey,
        submission: SubmissionId,
    ) -> Result<bool, StoreError> {
        submission::erase::erase(&self.general, application, submission).await
    }

    async fn find_delivery(
        &self,
        application: ApplicationKey,
        id: DeliveryId,
    ) -> Result<Option<DeliveryDetail>, StoreError> {
        let Some(delivery) = delivery::find::find(&self.general, application, id).await? else {
            return Ok(None);
        };
        let (endpoint, counted) = (delivery.endpoint, delivery.attempts);
        let attempts =
            delivery::list_attempts::list_attempts(&self.general, endpoint, id, counted).await?;
        Ok(Some(DeliveryDetail { delivery, attempts }))
    }

    async fn list_deliveries(
        &self,
        filter: DeliveryFilter,
    ) -> Result<Vec<DeliveryView>, StoreError> {
        delivery::list::list(&self.general, filter).await
    }

    async fn sweep_rate_limits(&self, batch: u32) -> Result<u64, StoreError> {
        rate_limit::sweep::sweep(&self.general, batch).await
    }
}
