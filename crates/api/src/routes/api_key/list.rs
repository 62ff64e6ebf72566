//! `GET /v1/keys?limit&cursor`: newest first, revoked ones included.

use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, Responder};

use super::{KeyBody, State};
use crate::auth::Caller;
use crate::fields::Fields;
use crate::list::{Binding, Paging};
use crate::openapi::Doc;
use crate::problem::Problem;

pub(super) fn doc() -> Doc {
    Doc::of("list_keys", "Lists keys, newest first, revoked ones too")
        .answers_list::<KeyBody>("Keys, without the keys themselves")
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
    let binding = Binding::of("keys", caller.application, &narrowed);
    let page = paging.page(binding)?;
    let keys = state.store.list_api_keys(caller.narrowed_to, page).await?;
    Ok(Json(paging.list(binding, keys, |row| row.id, KeyBody::from)))
}
