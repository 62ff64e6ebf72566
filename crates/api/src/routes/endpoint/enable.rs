//! `POST /v1/endpoints/{endpoint_id}/enable`: ends a pause, takes away what disabled the endpoint, and
//! forgets its failures: an open circuit is closed.

use actix_web::web::{Data, Json, Path, Payload};
use actix_web::{HttpRequest, Responder};
use domain::id::PublicId;

use super::{EndpointBody, State};
use crate::auth::Caller;
use crate::body;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::openapi::schema::NoFields;
use crate::problem::{Code, Problem};

pub(super) fn doc() -> Doc {
    Doc::of("enable_endpoint", "Ends a pause, and takes away what disabled the endpoint")
        .about("Its failures so far do not count any more, and an open circuit is closed.")
        .may_take::<NoFields>()
        .answers::<EndpointBody>(200, "The endpoint")
}

pub(super) async fn enable(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    endpoint_id: Path<String>,
    payload: Payload,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    body::read_no_fields(&request, payload, state.management_limit()).await?;
    let missing = || Problem::new(Code::EndpointNotFound);
    let id = PublicId::parse(&endpoint_id).map_err(|_| missing())?;
    let enabled = state.store.enable_endpoint(caller.application, &id).await?;
    Ok(Json(EndpointBody::read(&state, enabled.ok_or_else(missing)?).await?))
}
