//! `PUT /v1/operational-endpoint`: names the endpoint of the call's application that events go to.

use actix_web::web::{Data, Json, Payload};
use actix_web::{HttpRequest, Responder};
use domain::id::PublicId;

use super::{OperationalEndpointBody, State, refuse_bound};
use crate::auth::Caller;
use crate::body;
use crate::fields::{Fields, refuse_query};
use crate::openapi::Doc;
use crate::openapi::schema::{self, named};
use crate::problem::{Code, Problem};

named! {
    /// The endpoint that events about the service are to go to.
    NewOperationalEndpoint => schema::closed_object()
        .property("endpoint_id", schema::PublicId::schema())
        .required("endpoint_id");
}

pub(super) fn doc() -> Doc {
    Doc::of("set_operational_endpoint", "Names the endpoint that receives events about the service")
        .about(
            "An endpoint was disabled, fails or has recovered, a delivery failed, a secret was rotated. \
                Nothing is told about this endpoint itself. A key that is bound to an application cannot.",
        )
        .takes::<NewOperationalEndpoint>()
        .answers::<OperationalEndpointBody>(200, "The endpoint")
        .refuses([Code::KeyBound, Code::EndpointNotFound])
}

pub(super) async fn set(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    payload: Payload,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    refuse_bound(&caller)?;
    let body = body::read_json(&request, payload, state.management_limit()).await?;
    let mut fields = Fields::of_body(&body)?;
    let id = fields.required("endpoint_id", PublicId::parse);
    let id = fields.finish(id)?;
    let endpoint = state.store.find_endpoint(caller.application, &id).await?;
    let endpoint = endpoint.ok_or_else(|| Problem::new(Code::EndpointNotFound))?;
    let named = state.store.set_operational_endpoint(endpoint.key).await?;
    let named = named.ok_or_else(|| Problem::new(Code::EndpointNotFound))?;
    Ok(Json(OperationalEndpointBody::from(Some(named))))
}
