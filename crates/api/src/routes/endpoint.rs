//! Endpoints.

mod create;
mod get;
mod list;
mod rotate;

use domain::endpoint::DisabledCause;
use domain::id::{ApplicationKey, EndpointKey, PublicId};
use serde::Serialize;
use store::api_key::Role;
use store::endpoint::Endpoint;

use super::{Access, Call, State};
use crate::fields::Fields;
use crate::instant::Instant;
use crate::problem::{Code, Problem};

pub(super) fn calls() -> Vec<Call> {
    vec![
        Call::get("/v1/endpoints", Access::Key(Role::Read), list::list),
        Call::post("/v1/endpoints", Access::Key(Role::Admin), create::create),
        Call::get("/v1/endpoints/{endpoint_id}", Access::Key(Role::Read), get::get),
        Call::post(
            "/v1/endpoints/{endpoint_id}/secrets/rotate",
            Access::Key(Role::Admin),
            rotate::rotate,
        ),
    ]
}

/// An endpoint as it is answered, without its secrets.
#[derive(Debug, Serialize)]
struct EndpointBody {
    id: String,
    url: String,
    name: Option<String>,
    enabled: bool,
    disabled_cause: Option<&'static str>,
    created_at: Instant,
}

impl From<Endpoint> for EndpointBody {
    fn from(endpoint: Endpoint) -> Self {
        Self {
            id: endpoint.id.as_str().to_owned(),
            url: endpoint.url,
            name: endpoint.name,
            enabled: endpoint.disabled.is_none(),
            disabled_cause: endpoint.disabled.map(DisabledCause::as_str),
            created_at: Instant(endpoint.created_at),
        }
    }
}

/// The endpoint of an application that a text names.
pub(super) async fn find(
    state: &State,
    application: ApplicationKey,
    id: &str,
) -> Result<Endpoint, Problem> {
    let missing = || Problem::new(Code::EndpointNotFound);
    let id = PublicId::parse(id).map_err(|_| missing())?;
    state.store.find_endpoint(application, &id).await?.ok_or_else(missing)
}

/// Takes `endpoint_id` from the query of a list.
pub(super) fn take_filter(fields: &mut Fields) -> Option<PublicId> {
    fields.optional("endpoint_id", PublicId::parse)
}

/// The endpoint that a list is narrowed to, if any.
pub(super) async fn find_filtered(
    state: &State,
    application: ApplicationKey,
    id: Option<PublicId>,
) -> Result<Option<EndpointKey>, Problem> {
    let Some(id) = id else { return Ok(None) };
    let endpoint = state.store.find_endpoint(application, &id).await?;
    let endpoint = endpoint.ok_or_else(|| Problem::new(Code::EndpointNotFound))?;
    Ok(Some(endpoint.key))
}
