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
use crate::openapi::Doc;
use crate::openapi::schema::{self, named};
use crate::problem::{Code, Problem};

named! {
    /// An application to be made.
    NewApplicationBody => schema::closed_object()
        .property("id", schema::PublicId::schema())
        .property("name", schema::label())
        .required("id")
        .required("name");
}

pub(super) fn doc() -> Doc {
    Doc::of("create_application", "Creates an application, which is a tenant")
        .about("A key that is bound to an application cannot.")
        .takes::<NewApplicationBody>()
        .answers::<ApplicationBody>(201, "The application")
        .refuses([Code::KeyBound, Code::ApplicationIdTaken])
}

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
