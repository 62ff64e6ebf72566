//! `DELETE /v1/submissions/{submission_id}/payload`: erases what one submission brought.
//!
//! What is owed for it is cancelled. Erasing it again answers the same. A resend has bytes of its own.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use domain::id::SubmissionId;

use super::State;
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::problem::{Code, Problem};

pub(super) fn doc() -> Doc {
    Doc::of("erase_payload", "Erases what a submission brought")
        .about("What is owed for it is cancelled. Erasing it again answers the same.")
        .answers_nothing(204, "It is erased")
}

pub(super) async fn erase(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    submission_id: Path<String>,
) -> Result<HttpResponse, Problem> {
    refuse_query(&request)?;
    let missing = || Problem::new(Code::SubmissionNotFound);
    let id: SubmissionId = submission_id.parse().map_err(|_| missing())?;
    tracing::Span::current().record("submission.id", tracing::field::display(id));
    if state.store.erase_payload(caller.application, id).await? {
        Ok(HttpResponse::NoContent().finish())
    } else {
        Err(missing())
    }
}
