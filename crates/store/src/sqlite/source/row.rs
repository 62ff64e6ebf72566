//! Rows of `sources`, with the endpoint's name and what was refused.

use domain::id::{ApplicationKey, SourceKey};
use sqlx::FromRow;
use uuid::Uuid;

use crate::StoreError;
use crate::source::{Source, SourceTexts, refusals};
use crate::sqlite::codec::{UnixMicros, corrupt};

#[derive(Debug, FromRow)]
pub(super) struct SourceRow {
    key: Uuid,
    application: Uuid,
    id: String,
    name: Option<String>,
    endpoint_id: String,
    scheme: String,
    event_id: Option<String>,
    headers: String,
    refused: i64,
    refusals: String,
    version: i64,
    created_at: UnixMicros,
    updated_at: UnixMicros,
}

impl SourceRow {
    pub(super) fn source(self) -> Result<Source, StoreError> {
        let texts = SourceTexts {
            key: self.key,
            id: &self.id,
            scheme: &self.scheme,
            event_id: self.event_id.as_deref(),
            headers: header_names(&self.headers, self.key)?,
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
            created_at: self.created_at.0,
            updated_at: self.updated_at.0,
        })
    }
}

/// The names of a column that holds them as a JSON array.
pub(super) fn header_names(json: &str, source: Uuid) -> Result<Vec<String>, StoreError> {
    serde_json::from_str(json).map_err(|_| corrupt("sources", "headers", source))
}
