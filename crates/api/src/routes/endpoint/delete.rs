//! `DELETE /v1/endpoints/{endpoint_id}`: takes an endpoint away at once.
//!
//! What is owed to it is cancelled after that, in the background. Its id is never given again. A second
//! DELETE answers 404, as every call does that names it: the first one has had its effect.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use domain::id::PublicId;

use super::State;
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::problem::{Code, Problem};

pub(super) fn doc() -> Doc {
    Doc::of("delete_endpoint", "Takes an endpoint away at once")
        .about("What is owed to it is cancelled in the background. Its id is never given again.")
        .answers_nothing(204, "It is gone")
}

pub(super) async fn delete(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    endpoint_id: Path<String>,
) -> Result<HttpResponse, Problem> {
    refuse_query(&request)?;
    let missing = || Problem::new(Code::EndpointNotFound);
    let id = PublicId::parse(&endpoint_id).map_err(|_| missing())?;
    if state.store.delete_endpoint(caller.application, &id).await? {
        tracing::Span::current().record("endpoint.id", id.as_str());
        Ok(HttpResponse::NoContent().finish())
    } else {
        Err(missing())
    }
}
