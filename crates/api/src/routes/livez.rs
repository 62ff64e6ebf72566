//! `GET /livez`: the process serves requests. It needs no key and touches no database.

use actix_web::Responder;
use actix_web::web::Json;
use serde::Serialize;

#[derive(Serialize)]
struct Live {
    status: &'static str,
}

pub(super) async fn live() -> impl Responder {
    Json(Live { status: "live" })
}
