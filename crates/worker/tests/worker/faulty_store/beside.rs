//! What a worker calls beside its deliveries, and what it never calls: all goes to the store.

use async_trait::async_trait;
use domain::id::SourceKey;
use domain::id::{ApplicationKey, EndpointKey, PublicId, SubmissionId};
use domain::source::Refusal;
use store::Page;
use store::hold::{Hold, Holds, WaitingEndpoint};
use store::life::{Life, Lives};
use store::maintenance::{Candidacy, Cleared, Maintenance, Recount};
use store::receipt::Receipt;
use store::secret::Resealing;
use store::source::{
    Gateway, NewReception, NewSource, NewSourceSecret, Reception, Source, SourceChange,
    SourceCreation, SourceRotation, Sources,
};
use uuid::Uuid;

use super::{Answer, FaultyStore};

#[async_trait]
impl Sources for FaultyStore {
    async fn create_source(&self, source: &NewSource) -> Answer<SourceCreation> {
        self.store.create_source(source).await
    }

    async fn find_source(&self, of: ApplicationKey, id: &PublicId) -> Answer<Option<Source>> {
        self.store.find_source(of, id).await
    }

    async fn list_sources(&self, of: ApplicationKey, page: Page) -> Answer<Vec<Source>> {
        self.store.list_sources(of, page).await
    }

    async fn update_source(
        &self,
        of: ApplicationKey,
        id: &PublicId,
        change: &SourceChange,
    ) -> Answer<Option<Source>> {
        self.store.update_source(of, id, change).await
    }

    async fn delete_source(&self, of: ApplicationKey, id: &PublicId) -> Answer<bool> {
        self.store.delete_source(of, id).await
    }

    async fn rotate_source_secret(&self, new: &NewSourceSecret) -> Answer<SourceRotation> {
        self.store.rotate_source_secret(new).await
    }

    async fn reseal_source_secrets(&self, after: Option<Uuid>, limit: u16) -> Answer<Resealing> {
        self.store.reseal_source_secrets(after, limit).await
    }

    async fn read_gateway(&self, of: ApplicationKey, id: &PublicId) -> Answer<Option<Gateway>> {
        self.store.read_gateway(of, id).await
    }

    async fn note_refusal(&self, source: SourceKey, refusal: &Refusal) -> Answer<()> {
        self.store.note_refusal(source, refusal).await
    }

    async fn receive(&self, reception: &NewReception) -> Answer<Reception> {
        self.store.receive(reception).await
    }

    async fn find_receipt(&self, of: ApplicationKey, id: SubmissionId) -> Answer<Option<Receipt>> {
        self.store.find_receipt(of, id).await
    }
}

/// Upkeep goes its own way: these tests are about deliveries.
#[async_trait]
impl Maintenance for FaultyStore {
    async fn lead(&self, candidacy: &Candidacy<'_>) -> Answer<bool> {
        self.store.lead(candidacy).await
    }

    async fn resign(&self, token: Uuid) -> Answer<()> {
        self.store.resign(token).await
    }

    async fn recount_slots(&self, after: Option<EndpointKey>, limit: u32) -> Answer<Recount> {
        self.store.recount_slots(after, limit).await
    }

    async fn cancel_deleted(&self, limit: u32) -> Answer<u64> {
        self.store.cancel_deleted(limit).await
    }

    async fn cancel_requested(&self, limit: u32) -> Answer<u64> {
        self.store.cancel_requested(limit).await
    }

    async fn fail_held(&self, limit: u32) -> Answer<u64> {
        self.store.fail_held(limit).await
    }

    async fn disable_failing(&self, limit: u32) -> Answer<Vec<EndpointKey>> {
        self.store.disable_failing(limit).await
    }

    async fn expire_failed(&self, limit: u32) -> Answer<u64> {
        self.store.expire_failed(limit).await
    }

    async fn expire_keys(&self, limit: u32) -> Answer<u64> {
        self.store.expire_keys(limit).await
    }

    async fn prepare_history(&self) -> Answer<()> {
        self.store.prepare_history().await
    }

    async fn clear_history(&self, limit: u32) -> Answer<Cleared> {
        self.store.clear_history(limit).await
    }
}

#[async_trait]
impl Lives for FaultyStore {
    async fn read_lives(&self, endpoints: &[EndpointKey]) -> Answer<Vec<Life>> {
        self.store.read_lives(endpoints).await
    }
}

#[async_trait]
impl Holds for FaultyStore {
    async fn set_hold(&self, held: bool, reason: Option<&str>) -> Answer<()> {
        self.store.set_hold(held, reason).await
    }

    async fn is_held(&self) -> Answer<bool> {
        self.store.is_held().await
    }

    async fn read_hold(&self) -> Answer<Hold> {
        self.store.read_hold().await
    }

    async fn read_waiting(&self, below: Option<Uuid>) -> Answer<Vec<WaitingEndpoint>> {
        self.store.read_waiting(below).await
    }

    async fn mark_sent(&self, below: Uuid, limit: u32) -> Answer<u64> {
        self.store.mark_sent(below, limit).await
    }
}
