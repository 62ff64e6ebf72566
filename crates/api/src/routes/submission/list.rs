//! `GET /v1/submissions?endpoint_id&limit`: newest first.

use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, Responder};
use store::submission::SubmissionFilter;

use super::{State, SubmissionBody, endpoint};
use crate::auth::Caller;
use crate::fields::Fields;
use crate::list::{List, take_page};
use crate::problem::Problem;

pub(super) async fn list(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
) -> Result<impl Responder, Problem> {
    let mut fields = Fields::of_query(&request);
    let page = take_page(&mut fields);
    let endpoint_id = endpoint::take_filter(&mut fields);
    fields.finish(Some(()))?;
    let application = caller.application;
    let endpoint = endpoint::find_filtered(&state, application, endpoint_id).await?;
    let filter = SubmissionFilter { application, endpoint, page };
    let submissions = state.store.list_submissions(filter).await?;
    Ok(Json(List::of(submissions, SubmissionBody::from)))
}
