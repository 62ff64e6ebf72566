//! `GET /v1/operational-endpoint`

use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, Responder};

use super::{OperationalEndpointBody, State, refuse_bound};
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::problem::{Code, Problem};

pub(super) fn doc() -> Doc {
    Doc::of("get_operational_endpoint", "Shows where events about the service go")
        .about("A key that is bound to an application cannot.")
        .answers::<OperationalEndpointBody>(200, "The endpoint, or nulls for nowhere")
        .refuses([Code::KeyBound])
}

pub(super) async fn get(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    refuse_bound(&caller)?;
    let endpoint = state.store.read_operational_endpoint().await?;
    Ok(Json(OperationalEndpointBody::from(endpoint)))
}
