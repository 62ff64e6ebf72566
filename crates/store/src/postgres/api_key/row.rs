//! A row of `api_keys`, with the public id of its application.

use time::OffsetDateTime;
use uuid::Uuid;

use crate::api_key::ApiKeyView;
use crate::postgres::codec::corrupt;
use crate::{StoreError, codes};

#[derive(Debug)]
pub(super) struct ApiKeyRow {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) shown_prefix: String,
    pub(super) role: i16,
    pub(super) application_id: Option<String>,
    pub(super) created_at: OffsetDateTime,
    pub(super) last_used_at: Option<OffsetDateTime>,
    pub(super) revoked_at: Option<OffsetDateTime>,
}

impl TryFrom<ApiKeyRow> for ApiKeyView {
    type Error = StoreError;

    fn try_from(row: ApiKeyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            name: row.name,
            shown_prefix: row.shown_prefix,
            role: codes::role(row.role).ok_or_else(|| corrupt("api_keys", "role", row.id))?,
            application_id: row.application_id,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            revoked_at: row.revoked_at,
        })
    }
}
