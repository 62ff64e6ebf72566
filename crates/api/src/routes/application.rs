//! Applications: tenants.

mod create;
mod list;

use serde::Serialize;
use store::api_key::Role;
use store::application::Application;

use utoipa::ToSchema;

use super::{Access, Call, State};
use crate::instant::Instant;

pub(super) fn calls() -> Vec<Call> {
    vec![
        Call::get("/v1/applications", Access::Key(Role::Admin), list::doc(), list::list),
        Call::post("/v1/applications", Access::Key(Role::Admin), create::doc(), create::create),
    ]
}

/// An application as it is answered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Application)]
struct ApplicationBody {
    id: String,
    name: String,
    created_at: Instant,
}

impl From<Application> for ApplicationBody {
    fn from(application: Application) -> Self {
        Self {
            id: application.id,
            name: application.name,
            created_at: Instant(application.created_at),
        }
    }
}
