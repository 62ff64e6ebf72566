//! `GET /v1/submissions?endpoint_id&created_after&created_before&limit&cursor`: newest first.

use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, Responder};
use store::submission::SubmissionFilter;

use super::{State, SubmissionBody, endpoint};
use crate::auth::Caller;
use crate::fields::Fields;
use crate::list::{Binding, Paging};
use crate::openapi::Doc;
use crate::problem::Problem;
use crate::routes::created::{describe_created, take_created, written};

pub(super) fn doc() -> Doc {
    describe_created(endpoint::describe_filter(Doc::of(
        "list_submissions",
        "Lists submissions, newest first",
    )))
    .answers_list::<SubmissionBody>("Submissions, without their payloads")
}

pub(super) async fn list(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
) -> Result<impl Responder, Problem> {
    let mut fields = Fields::of_query(&request);
    let paging = Paging::take(&mut fields);
    let endpoint_id = endpoint::take_filter(&mut fields);
    let created = take_created(&mut fields);
    fields.finish(Some(()))?;
    let application = caller.application;
    let endpoint = endpoint::find_filtered(&state, application, endpoint_id).await?;
    let narrowed =
        [endpoint.map(|it| it.to_string()), written(created.from), written(created.below)];
    let binding = Binding::of("submissions", application, &narrowed);
    let page = paging.page(binding)?;
    let filter = SubmissionFilter { application, endpoint, created, page };
    let submissions = state.store.list_submissions(filter).await?;
    Ok(Json(paging.list(binding, submissions, |row| row.id.as_uuid(), SubmissionBody::from)))
}
