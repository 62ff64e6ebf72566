//! `GET /v1/keys?limit`: newest first, revoked ones included.

use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, Responder};

use super::{KeyBody, State};
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
    let keys = state.store.list_api_keys(caller.narrowed_to, page).await?;
    Ok(Json(List::of(keys, KeyBody::from)))
}
