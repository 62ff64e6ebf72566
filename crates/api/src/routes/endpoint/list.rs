//! `GET /v1/endpoints?limit&cursor`: newest first.

use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, Responder};
use domain::id::EndpointKey;

use super::{EndpointBody, State};
use crate::auth::Caller;
use crate::fields::Fields;
use crate::list::{Binding, Paging};
use crate::openapi::Doc;
use crate::problem::Problem;

pub(super) fn doc() -> Doc {
    Doc::of("list_endpoints", "Lists endpoints, newest first")
        .answers_list::<EndpointBody>("Endpoints, without their secrets")
}

pub(super) async fn list(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
) -> Result<impl Responder, Problem> {
    let mut fields = Fields::of_query(&request);
    let paging = Paging::take(&mut fields);
    fields.finish(Some(()))?;
    let binding = Binding::of("endpoints", caller.application, &[]);
    let page = paging.page(binding)?;
    let endpoints = state.store.list_endpoints(caller.application, page).await?;
    let keys: Vec<EndpointKey> = endpoints.iter().map(|endpoint| endpoint.key).collect();
    let lives = state.store.read_lives(&keys).await?;
    let rows = endpoints.into_iter().zip(lives).collect();
    let render = |(endpoint, life)| EndpointBody::new(endpoint, life);
    Ok(Json(paging.list(binding, rows, |(row, _)| row.key.as_uuid(), render)))
}
