//! Sources, and what they send.

mod create;
mod delete;
mod find;
mod find_receipt;
mod list;
mod note_refusal;
mod read_gateway;
mod receive;
mod reseal_secrets;
mod rotate_secret;
mod row;
mod update;

use async_trait::async_trait;
use domain::id::{ApplicationKey, PublicId, SourceKey, SubmissionId};
use domain::source::Refusal;
use uuid::Uuid;

use super::PostgresStore;
use crate::receipt::Receipt;
use crate::secret::Resealing;
use crate::source::{
    Gateway, NewReception, NewSource, NewSourceSecret, Reception, Source, SourceChange,
    SourceCreation, SourceRotation, Sources,
};
use crate::{Page, StoreError};

#[async_trait]
impl Sources for PostgresStore {
    async fn create_source(&self, source: &NewSource) -> Result<SourceCreation, StoreError> {
        create::create(&self.general, &self.options.sealer, source).await
    }

    async fn find_source(
        &self,
        application: ApplicationKey,
        id: &PublicId,
    ) -> Result<Option<Source>, StoreError> {
        find::find(&self.general, application, id).await
    }

    async fn list_sources(
        &self,
        application: ApplicationKey,
        page: Page,
    ) -> Result<Vec<Source>, StoreError> {
        list::list(&self.general, application, page).await
    }

    async fn update_source(
        &self,
        application: ApplicationKey,
        id: &PublicId,
        change: &SourceChange,
    ) -> Result<Option<Source>, StoreError> {
        update::update(&self.general, application, id, change).await
    }

    async fn delete_source(
        &self,
        application: ApplicationKey,
        id: &PublicId,
    ) -> Result<bool, StoreError> {
        delete::delete(&self.general, application, id).await
    }

    async fn rotate_source_secret(
        &self,
        new: &NewSourceSecret,
    ) -> Result<SourceRotation, StoreError> {
        rotate_secret::rotate_secret(&self.general, &self.options.sealer, new).await
    }

    async fn reseal_source_secrets(
        &self,
        after: Option<Uuid>,
        limit: u16,
    ) -> Result<Resealing, StoreError> {
        reseal_secrets::reseal_secrets(&self.general, &self.options.sealer, after, limit).await
    }

    async fn read_gateway(
        &self,
        application: ApplicationKey,
        id: &PublicId,
    ) -> Result<Option<Gateway>, StoreError> {
        read_gateway::read_gateway(&self.general, &self.options.sealer, application, id).await
    }

    async fn note_refusal(&self, source: SourceKey, refusal: &Refusal) -> Result<(), StoreError> {
        note_refusal::note_refusal(&self.general, source, refusal).await
    }

    async fn receive(&self, reception: &NewReception) -> Result<Reception, StoreError> {
        receive::receive(&self.general, reception).await
    }

    async fn find_receipt(
        &self,
        application: ApplicationKey,
        submission: SubmissionId,
    ) -> Result<Option<Receipt>, StoreError> {
        find_receipt::find_receipt(&self.general, application, submission).await
    }
}
