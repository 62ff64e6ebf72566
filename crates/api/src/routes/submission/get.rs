//! `GET /v1/submissions/{submission_id}`: what is known of a submission, without its payload.

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, Responder};

use super::{State, SubmissionBody, find};
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::problem::Problem;

pub(super) fn doc() -> Doc {
    Doc::of("get_submission", "Shows a submission, without its payload")
        .answers::<SubmissionBody>(200, "The submission")
}

pub(super) async fn get(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    submission_id: Path<String>,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    let submission = find(&state, caller.application, &submission_id).await?;
    Ok(Json(SubmissionBody::from(submission)))
}
