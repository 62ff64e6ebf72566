//! `GET /livez`: the process serves requests. It needs no key and touches no database.

use actix_web::Responder;
use actix_web::web::Json;
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi::Doc;

#[derive(Serialize, ToSchema)]
struct Live {
    #[schema(value_type = String)]
    status: &'static str,
}

pub(super) fn doc() -> Doc {
    Doc::of("live", "Says that the process serves requests").answers::<Live>(200, "It does")
}

pub(super) async fn live() -> impl Responder {
    Json(Live { status: "live" })
}
