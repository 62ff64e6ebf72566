//! `GET /v1/submissions/{submission_id}/payload`: the bytes as they were accepted.
//!
//! They are strangers' content under our address, so a browser may neither guess their type nor show
//! them.

use actix_web::http::header::{CONTENT_DISPOSITION, HeaderValue};
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};

use super::{State, find};
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::openapi::schema::anything;
use crate::problem::{Code, Problem};

pub(super) fn doc() -> Doc {
    Doc::of("get_payload", "Gives the bytes of a submission as they were accepted")
        .answers_other(200, "*/*", "The bytes, with their own content type", anything().into())
        .refuses([Code::PayloadErased])
}

pub(super) async fn payload(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    submission_id: Path<String>,
) -> Result<HttpResponse, Problem> {
    refuse_query(&request)?;
    let submission = find(&state, caller.application, &submission_id).await?;
    let payloads = state.store.read_payloads(&[(submission.endpoint, submission.id)]).await?;
    let Some(payload) = payloads.into_iter().next() else {
        // It was there a moment ago: erased, or dropped with its day meanwhile.
        find(&state, caller.application, &submission_id).await?;
        return Err(Problem::new(Code::PayloadErased));
    };
    Ok(HttpResponse::Ok()
        .content_type(payload.content_type)
        .insert_header((CONTENT_DISPOSITION, HeaderValue::from_static("attachment")))
        .body(payload.payload))
}
