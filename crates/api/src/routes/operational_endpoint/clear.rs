//! `DELETE /v1/operational-endpoint`: events go nowhere from now on, and none is written.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};

use super::{State, refuse_bound};
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::problem::{Code, Problem};

pub(super) fn doc() -> Doc {
    Doc::of("clear_operational_endpoint", "Lets events about the service go nowhere")
        .about("A key that is bound to an application cannot.")
        .answers_nothing(204, "None receives them")
        .refuses([Code::KeyBound])
}

pub(super) async fn clear(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    refuse_query(&request)?;
    refuse_bound(&caller)?;
    state.store.clear_operational_endpoint().await?;
    Ok(HttpResponse::NoContent().finish())
}
