//! A row of `api_keys`, with the public id of its application.

use sqlx::FromRow;
use uuid::Uuid;

use crate::api_key::ApiKeyView;
use crate::sqlite::codec::{UnixMicros, corrupt};
use crate::{StoreError, codes};

#[derive(Debug, FromRow)]
pub(super) struct ApiKeyRow {
    id: Uuid,
    name: String,
    shown_prefix: String,
    role: i16,
    application_id: Option<String>,
    created_at: UnixMicros,
    last_used_at: Option<UnixMicros>,
    revoked_at: Option<UnixMicros>,
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
            created_at: row.created_at.0,
            last_used_at: row.last_used_at.map(|at| at.0),
            revoked_at: row.revoked_at.map(|at| at.0),
        })
    }
}
