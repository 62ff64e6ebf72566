//! `GET /readyz`, on the private address: the database is reached and its schema is right.

use actix_web::Responder;
use actix_web::web::{Data, Json};
use serde::Serialize;
use utoipa::ToSchema;

use super::State;
use crate::openapi::Doc;
use crate::problem::{Code, Problem};

#[derive(Serialize, ToSchema)]
struct Ready {
    #[schema(value_type = String)]
    status: &'static str,
}

pub(super) fn doc() -> Doc {
    Doc::of("ready", "Says whether the service can work")
        .answers::<Ready>(200, "It can")
        .refuses([Code::NotReady])
}

pub(super) async fn ready(state: Data<State>) -> Result<impl Responder, Problem> {
    match state.store.check().await {
        Ok(()) => Ok(Json(Ready { status: "ready" })),
        // Its own words name what to mend and hold no secret; those of its sources may.
        Err(error) => {
            let reason = error.to_string();
            Err(Problem::new(Code::NotReady).detail(reason).caused_by(error.chain()))
        }
    }
}
