//! `GET /v1/endpoints/{endpoint_id}`

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, Responder};
use serde::Serialize;
use utoipa::ToSchema;

use super::{EndpointBody, State, find};
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::problem::Problem;

#[derive(Serialize, ToSchema)]
struct ReadEndpoint {
    #[serde(flatten)]
    endpoint: EndpointBody,
    /// For signatures of `v1a`, whether they are switched on or not.
    public_key: Option<String>,
}

pub(super) fn doc() -> Doc {
    Doc::of("get_endpoint", "Shows an endpoint, without its secrets")
        .answers::<ReadEndpoint>(200, "The endpoint")
}

pub(super) async fn get(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    endpoint_id: Path<String>,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    let endpoint = find(&state, caller.application, &endpoint_id).await?;
    let public_key = state.store.read_public_key(endpoint.key).await?;
    let public_key = public_key.map(|key| key.to_string());
    let endpoint = EndpointBody::read(&state, endpoint).await?;
    Ok(Json(ReadEndpoint { endpoint, public_key }))
}
