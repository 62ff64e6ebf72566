//! `GET /v1/sources?limit&cursor`: newest first.

use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, Responder};

use super::{SourceBody, State};
use crate::auth::Caller;
use crate::fields::Fields;
use crate::list::{Binding, Paging};
use crate::openapi::Doc;
use crate::problem::Problem;

pub(super) fn doc() -> Doc {
    Doc::of("list_sources", "Lists sources, newest first")
        .answers_list::<SourceBody>("Sources, without their secrets")
}

pub(super) async fn list(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
) -> Result<impl Responder, Problem> {
    let mut fields = Fields::of_query(&request);
    let paging = Paging::take(&mut fields);
    fields.finish(Some(()))?;
    let binding = Binding::of("sources", caller.application, &[]);
    let page = paging.page(binding)?;
    let sources = state.store.list_sources(caller.application, page).await?;
    Ok(Json(paging.list(binding, sources, |row| row.key.as_uuid(), SourceBody::from)))
}
