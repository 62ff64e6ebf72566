//! `POST /v1/applications`: creates an application. A key bound to one cannot.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use domain::id::PublicId;
use domain::label::Label;
use store::application::{ApplicationCreation, NewApplication};

use super::{ApplicationBody, State};
use crate::auth::Caller;
use crate::body;
use crate::fields::{Fields, refuse_query};
use crate::problem::{Code, Problem};

pub(super) async fn create(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, Problem> {
    refuse_query(&request)?;
    if caller.bound {
        return Err(Problem::new(Code::KeyBound));
    }
    let body = body::read_json(&request, payload, state.management_limit()).await?;
    let new = parse(&body)?;
    match state.store.create_application(&new).await? {
        ApplicationCreation::IdTaken => Err(Problem::new(Code::ApplicationIdTaken)),
        ApplicationCreation::Created(created) => {
            Ok(HttpResponse::Created().json(ApplicationBody::from(created)))
        }
    }
}

fn parse(body: &[u8]) -> Result<NewApplication, Problem> {
    let mut fields = Fields::of_body(body)?;
    let id = fields.required("id", PublicId::parse);
    let name = fields.required("name", Label::parse);
    let key = store::new_id::application_key();
    fields.finish(id.zip(name).map(|(id, name)| NewApplication { key, id, name }))
}
