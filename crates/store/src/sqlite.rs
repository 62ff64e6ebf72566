//! The store on SQLite: the embedded default for one machine.
//!
//! The tables, guards and answers are those of the store on PostgreSQL. What differs:
//!
//! * One connection writes, in transactions that hold the write lock from their first read on.
//!   Where PostgreSQL decides in SQL under row locks, this store reads a row, asks the domain, and
//!   writes what it decided: nobody can have changed the row in between.
//! * A commit returns when it is on the disk, and readers see the last commit without waiting.
//! * One server uses a file, held by [`ServerLock`]. Operators' commands run beside it in short
//!   transactions.

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
mod schema;
mod server_lock;
mod source;
mod submission;
mod wake_up;
mod writer;

use std::path::Path;

use async_trait::async_trait;
use domain::endpoint::DisabledCause;
use domain::health::Backlog;
use domain::id::{ApplicationKey, DeliveryId, EndpointKey, PublicId, SubmissionId};
use domain::signing::Ed25519PublicKey;
use sqlx::SqlitePool;
use uuid::Uuid;

use self::writer::Writer;
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
use crate::{Page, SCHEMA_VERSION, Store, StoreError, StoreOptions};

pub use begin::begin;
pub use pool::path_of_url;
pub use receipt::receive_once_in_tx;
pub use schema::migrate::migrate;
pub use schema::scratch::{ScratchDatabase, drop_scratch};
pub use server_lock::ServerLock;
pub use submission::accept_in_tx::accept_in_tx;

/// The store on SQLite.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    readers: SqlitePool,
    writer: Writer,
    options: StoreOptions,
}

impl SqliteStore {
    /// Opens a database that was migrated. Whoever serves it takes the lock as well, see
    /// [`lock_for_server`](Self::lock_for_server).
    pub async fn open(url: &str, options: StoreOptions) -> Result<Self, StoreError> {
        let path = path_of_url(url)?;
        if !path.exists() {
            return Err(StoreError::SchemaOutdated { found: 0, needed: SCHEMA_VERSION });
        }
        let readers = pool::readers(&path, &options);
        let writer = Writer::new(pool::writer(&path, &options));
        let store = Self { readers, writer, options };
        store.check().await?;
        Ok(store)
    }

    /// Makes the caller the one server of this database file, or answers [`StoreError::InUse`].
    pub fn lock_for_server(path: &Path) -> Result<ServerLock, StoreError> {
        ServerLock::take(path)
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn due_signal(&self) -> &DueSignal {
        &self.options.due_signal
    }

    async fn notify_due(&self, endpoints: &[EndpointKey]) -> Result<(), StoreError> {
        wake_up::notify_due::notify_due(&self.options.due_signal, endpoints);
        Ok(())
    }

    async fn listen(&self) -> Result<Listening, StoreError> {
        wake_up::listen::listen().await
    }

    fn writers_max(&self) -> usize {
        1
    }

    async fn check(&self) -> Result<(), StoreError> {
        schema::check::check(&self.readers).await
    }

    async fn create_api_key(&self, key: &NewApiKey) -> Result<ApiKeyView, StoreError> {
        api_key::create::create(&self.writer, key).await
    }

    async fn find_api_keys(
        &self,
        digests: &[ApiKeyDigest],
    ) -> Result<Vec<Option<ApiKey>>, StoreError> {
        api_key::find::find(&self.readers, digests).await
    }

    async fn has_api_keys(&self) -> Result<bool, StoreError> {
        api_key::has_any::has_any(&self.readers).await
    }

    async fn list_api_keys(
        &self,
        application: Option<ApplicationKey>,
        page: Page,
    ) -> Result<Vec<ApiKeyView>, StoreError> {
        api_key::list::list(&self.readers, application, page).await
    }

    async fn revoke_api_key(
        &self,
        application: Option<ApplicationKey>,
        id: Uuid,
    ) -> Result<Revocation, StoreError> {
        api_key::revoke::revoke(&self.writer, application, id).await
    }

    async fn note_api_key_use(&self, id: Uuid) -> Result<bool, StoreError> {
        api_key::note_use::note_use(&self.writer, id).await
    }

    async fn create_application(
        &self,
        application: &NewApplication,
    ) -> Result<ApplicationCreation, StoreError> {
        application::create::create(&self.writer, application).await
    }

    async fn list_applications(
        &self,
        only: Option<ApplicationKey>,
        page: Page,
    ) -> Result<Vec<Application>, StoreError> {
        application::list::list(&self.readers, only, page).await
    }

    async fn find_application(&self, id: &PublicId) -> Result<Option<ApplicationKey>, StoreError> {
        application::find::find(&self.readers, id).await
    }

    async fn create_endpoint(
        &self,
        endpoint: &NewEndpoint,
    ) -> Result<EndpointCreation, StoreError> {
        endpoint::create::create(&self.writer, &self.options.sealer, endpoint).await
    }

    async fn find_endpoints(
        &self,
        ids: &[(ApplicationKey, PublicId)],
    ) -> Result<Vec<Option<Endpoint>>, StoreError> {
        endpoint::find::find(&self.readers, &self.options.sealer, ids).await
    }

    async fn list_endpoints(
        &self,
        application: ApplicationKey,
        page: Page,
    ) -> Result<Vec<Endpoint>, StoreError> {
        endpoint::list::list(&self.readers, &self.options.sealer, application, page).await
    }

    async fn update_endpoint(
        &self,
        application: ApplicationKey,
        id: &PublicId,
        change: &EndpointChange,
    ) -> Result<EndpointUpdate, StoreError> {
        let sealer = &self.options.sealer;
        endpoint::update::update(&self.writer, sealer, application, id, change).await
    }

    async fn delete_endpoint(
        &self,
        application: ApplicationKey,
        id: &PublicId,
    ) -> Result<bool, StoreError> {
        endpoint::delete::delete(&self.writer, application, id).await
    }

    async fn pause_endpoint(
        &self,
        application: ApplicationKey,
        id: &PublicId,
        pause: Pause,
    ) -> Result<Option<Endpoint>, StoreError> {
        let sealer = &self.options.sealer;
        endpoint::pause::pause(&self.writer, sealer, application, id, pause).await
    }

    async fn enable_endpoint(
        &self,
        application: ApplicationKey,
        id: &PublicId,
    ) -> Result<Option<Endpoint>, StoreError> {
        endpoint::enable::enable(&self.writer, &self.options.sealer, application, id).await
    }

    async fn read_public_key(
        &self,
        endpoint: EndpointKey,
    ) -> Result<Option<Ed25519PublicKey>, StoreError> {
        endpoint::read_public_key::read_public_key(&self.readers, &self.options.sealer, endpoint)
            .await
    }

    async fn rotate_secrets(&self, new: &NewRotation) -> Result<Rotation, StoreError> {
        endpoint::rotate_secrets::rotate_secrets(&self.writer, &self.options.sealer, new).await
    }

    async fn reseal_secrets(
        &self,
        after: Option<Uuid>,
        limit: u16,
    ) -> Result<Resealing, StoreError> {
        endpoint::reseal_secrets::reseal_secrets(
            &self.readers,
            &self.writer,
            &self.options.sealer,
            after,
            limit,
        )
        .await
    }

    async fn reseal_headers(
        &self,
        after: Option<Uuid>,
        limit: u16,
    ) -> Result<Resealing, StoreError> {
        endpoint::reseal_headers::reseal_headers(
            &self.readers,
            &self.writer,
            &self.options.sealer,
            after,
            limit,
        )
        .await
    }

    async fn read_targets(&self, endpoints: &[EndpointKey]) -> Result<Vec<Target>, StoreError> {
        endpoint::read_targets::read_targets(&self.readers, &self.options.sealer, endpoints).await
    }

    async fn disable_endpoint(
        &self,
        endpoint: EndpointKey,
        version: i64,
        cause: DisabledCause,
    ) -> Result<bool, StoreError> {
        endpoint::disable::disable(&self.writer, endpoint, version, cause).await
    }

    async fn accept(&self, submissions: &[NewSubmission]) -> Result<Vec<Acceptance>, StoreError> {
        let window = self.options.idempotency_window.min(self.options.retention);
        submission::accept::accept(&self.writer, window, submissions).await
    }

    async fn find_submission(
        &self,
        application: ApplicationKey,
        id: SubmissionId,
    ) -> Result<Option<Submission>, StoreError> {
        submission::find::find(&self.readers, application, id).await
    }

    async fn list_submissions(
        &self,
        filter: SubmissionFilter,
    ) -> Result<Vec<Submission>, StoreError> {
        submission::list::list(&self.readers, filter).await
    }

    async fn read_payloads(
        &self,
        submissions: &[(EndpointKey, SubmissionId)],
    ) -> Result<Vec<Payload>, StoreError> {
        submission::read_payloads::read_payloads(&self.readers, submissions).await
    }

    async fn find_due_endpoints(&self, query: DueQuery) -> Result<Vec<EndpointKey>, StoreError> {
        delivery::find_due_endpoints::find_due_endpoints(&self.readers, query).await
    }

    async fn read_backlog(&self) -> Result<Backlog, StoreError> {
        delivery::read_backlog::read_backlog(&self.readers, BACKLOG_PER_ENDPOINT_MAX).await
    }

    async fn claim_due(&self, request: &ClaimRequest<'_>) -> Result<ClaimBatch, StoreError> {
        delivery::claim_due::claim_due(&self.writer, self.options.retention, request).await
    }

    async fn record_attempts(&self, reports: &[Report]) -> Result<Vec<Recording>, StoreError> {
        delivery::record_attempts::record_attempts(&self.writer, self.options.retention, reports)
            .await
    }

    async fn give_back(&self, claims: &[HeldClaim]) -> Result<Vec<DeliveryId>, StoreError> {
        delivery::give_back::give_back(&self.writer, claims).await
    }

    async fn replay_failed(
        &self,
        application: ApplicationKey,
        delivery: DeliveryId,
    ) -> Result<Replay, StoreError> {
        delivery::replay_failed::replay_failed(&self.writer, application, delivery).await
    }

    async fn cancel_delivery(
        &self,
        application: ApplicationKey,
        delivery: DeliveryId,
    ) -> Result<Cancellation, StoreError> {
        delivery::cancel::cancel(&self.writer, application, delivery).await
    }

    async fn resend(&self, resend: &NewResend) -> Result<Resend, StoreError> {
        let window = self.options.idempotency_window.min(self.options.retention);
        submission::resend::resend(&self.writer, window, resend).await
    }

    async fn erase_payload(
        &self,
        application: ApplicationKey,
        submission: SubmissionId,
    ) -> Result<bool, StoreError> {
        submission::erase::erase(&self.writer, application, submission).await
    }

    async fn find_delivery(
        &self,
        application: ApplicationKey,
        id: DeliveryId,
    ) -> Result<Option<DeliveryDetail>, StoreError> {
        let Some(delivery) = delivery::find::find(&self.readers, application, id).await? else {
            return Ok(None);
        };
        let attempts = delivery::list_attempts::list_attempts(&self.readers, &delivery).await?;
        Ok(Some(DeliveryDetail { delivery, attempts }))
    }

    async fn list_deliveries(
        &self,
        filter: DeliveryFilter,
    ) -> Result<Vec<DeliveryView>, StoreError> {
        delivery::list::list(&self.readers, filter).await
    }

    async fn sweep_rate_limits(&self, batch: u32) -> Result<u64, StoreError> {
        rate_limit::sweep::sweep(&self.writer, batch).await
    }
}
