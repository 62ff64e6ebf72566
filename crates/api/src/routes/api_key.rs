//! Keys. A key bound to an application manages the keys of that application and no others.

mod create;
mod list;
mod revoke;

use serde::Serialize;
use store::api_key::{ApiKeyView, Role};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Access, Call, State};
use crate::instant::Instant;
use crate::openapi::schema::KeyRole;

pub(super) fn calls() -> Vec<Call> {
    vec![
        Call::get("/v1/keys", Access::Key(Role::Admin), list::doc(), list::list),
        Call::post("/v1/keys", Access::Key(Role::Admin), create::doc(), create::create),
        Call::delete("/v1/keys/{key_id}", Access::Key(Role::Admin), revoke::doc(), revoke::revoke),
    ]
}

/// A key as it is answered, without the key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Key)]
struct KeyBody {
    id: Uuid,
    name: String,
    shown_prefix: String,
    #[schema(value_type = KeyRole)]
    role: &'static str,
    /// None: it is for all applications.
    application_id: Option<String>,
    created_at: Instant,
    /// Up to an hour too early.
    last_used_at: Option<Instant>,
    revoked_at: Option<Instant>,
}

impl From<ApiKeyView> for KeyBody {
    fn from(key: ApiKeyView) -> Self {
        Self {
            id: key.id,
            name: key.name,
            shown_prefix: key.shown_prefix,
            role: key.role.as_str(),
            application_id: key.application_id,
            created_at: Instant(key.created_at),
            last_used_at: key.last_used_at.map(Instant),
            revoked_at: key.revoked_at.map(Instant),
        }
    }
}
