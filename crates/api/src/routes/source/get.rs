//! `GET /v1/sources/{source_id}`: also tells why requests were refused.

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, Responder};

use super::{SourceBody, State, find};
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::problem::Problem;

pub(super) fn doc() -> Doc {
    Doc::of("get_source", "Shows a source, without its secrets")
        .answers::<SourceBody>(200, "The source, and why requests were refused")
}

pub(super) async fn get(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    source_id: Path<String>,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    let source = find(&state, caller.application, &source_id).await?;
    Ok(Json(SourceBody::from(source)))
}
