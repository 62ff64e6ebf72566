//! Rows of `sources`, with the endpoint's name and what was refused.

use domain::id::{ApplicationKey, SourceKey};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::StoreError;
use crate::source::{Source, SourceTexts, refusals};

#[derive(Debug)]
pub(super) struct SourceRow {
    pub(super) key: Uuid,
    pub(super) application: Uuid,
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) endpoint_id: String,
    pub(super) scheme: String,
    pub(super) event_id: Option<String>,
    pub(super) headers: Vec<String>,
    pub(super) refused: i64,
    pub(super) refusals: String,
    pub(super) version: i64,
    pub(super) created_at: OffsetDateTime,
    pub(super) updated_at: OffsetDateTime,
}

impl SourceRow {
    pub(super) fn source(self) -> Result<Source, StoreError> {
        let texts = SourceTexts {
            key: self.key,
            id: &self.id,
            scheme: &self.scheme,
            event_id: self.event_id.as_deref(),
            headers: self.headers,
        };
        let (id, scheme, event_id, headers) = texts.parse()?;
        Ok(Source {
            key: SourceKey::from_uuid(self.key),
            application: ApplicationKey::from_uuid(self.application),
            id,
            name: self.name,
            endpoint_id: self.endpoint_id,
            scheme,
            event_id,
            headers,
            refused: u64::try_from(self.refused).unwrap_or(0),
            refusals: refusals(&self.refusals),
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}
