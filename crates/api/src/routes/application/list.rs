//! `GET /v1/applications?limit`: newest first. A key bound to one application sees that one.

use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, Responder};

use super::{ApplicationBody, State};
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
    let page = fields.finish(Some(page))?;
    let applications = state.store.list_applications(caller.narrowed_to, page).await?;
    Ok(Json(List::of(applications, ApplicationBody::from)))
}
