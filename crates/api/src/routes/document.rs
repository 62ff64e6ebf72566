//! `GET /openapi.json`: the description of the API. It needs no key and names no secret.

use actix_web::HttpResponse;
use actix_web::web::Data;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::State;
use crate::openapi::Doc;

pub(super) fn doc() -> Doc {
    let object = ObjectBuilder::new().schema_type(Type::Object).build();
    Doc::of("document", "This document").answers_other(
        200,
        "application/json",
        "OpenAPI 3.1",
        object.into(),
    )
}

pub(super) async fn document(state: Data<State>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(state.document.clone())
}
