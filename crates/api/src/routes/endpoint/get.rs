//! `GET /v1/endpoints/{endpoint_id}`

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, Responder};

use super::{EndpointBody, State, find};
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::problem::Problem;

pub(super) async fn get(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    endpoint_id: Path<String>,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    let endpoint = find(&state, caller.application, &endpoint_id).await?;
    Ok(Json(EndpointBody::from(endpoint)))
}
