//! `DELETE /v1/sources/{source_id}`: takes a source away at once. Its id is never given again; what it
//! has brought stays.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use domain::id::PublicId;

use super::State;
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::problem::{Code, Problem};

pub(super) fn doc() -> Doc {
    Doc::of("delete_source", "Takes a source away at once")
        .about("What it has brought stays. Its id is never given again.")
        .answers_nothing(204, "It is gone")
}

pub(super) async fn delete(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    source_id: Path<String>,
) -> Result<HttpResponse, Problem> {
    refuse_query(&request)?;
    let missing = || Problem::new(Code::SourceNotFound);
    let id = PublicId::parse(&source_id).map_err(|_| missing())?;
    if state.store.delete_source(caller.application, &id).await? {
        Ok(HttpResponse::NoContent().finish())
    } else {
        Err(missing())
    }
}
