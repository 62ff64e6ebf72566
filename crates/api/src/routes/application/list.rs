//! `GET /v1/applications?limit&cursor`: newest first. A key bound to one application sees that one.

use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, Responder};

use super::{ApplicationBody, State};
use crate::auth::Caller;
use crate::fields::Fields;
use crate::list::{Binding, Paging};
use crate::openapi::Doc;
use crate::problem::Problem;

pub(super) fn doc() -> Doc {
    Doc::of("list_applications", "Lists applications, newest first")
        .about("A key that is bound to one sees that one.")
        .answers_list::<ApplicationBody>("Applications")
}

pub(super) async fn list(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
) -> Result<impl Responder, Problem> {
    let mut fields = Fields::of_query(&request);
    let paging = Paging::take(&mut fields);
    fields.finish(Some(()))?;
    let narrowed = [caller.narrowed_to.map(|it| it.to_string())];
    let binding = Binding::of("applications", caller.application, &narrowed);
    let page = paging.page(binding)?;
    let applications = state.store.list_applications(caller.narrowed_to, page).await?;
    Ok(Json(paging.list(binding, applications, |row| row.key.as_uuid(), ApplicationBody::from)))
}
