//! `GET /in/{source_id}`: a sender asks, before it sends, whether the right one is at home.

use actix_web::http::header::ContentType;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use domain::source::challenge;

use super::{State, find};
use crate::openapi::Doc;
use crate::openapi::schema::text;
use crate::problem::{Code, Problem};

pub(super) fn doc_of_default() -> Doc {
    doc(Doc::of("challenge_source", "Answers a sender's question, for a source of `default`"))
}

pub(super) fn doc_of_application() -> Doc {
    doc(Doc::of("challenge_source_of_application", "Answers a sender's question"))
}

fn doc(doc: Doc) -> Doc {
    let schema = text().build().into();
    doc.about("The handshake of Meta: `hub.mode`, `hub.verify_token` and `hub.challenge`.")
        .answers_other(200, "text/plain", "What was asked with", schema)
        .refuses([Code::SourceNotFound, Code::SignatureInvalid, Code::RateLimited])
        .refuses([Code::Overloaded, Code::DatabaseUnavailable, Code::Internal])
}

pub(super) async fn to_default(
    state: Data<State>,
    request: HttpRequest,
    source_id: Path<String>,
) -> Result<HttpResponse, Problem> {
    answer(&state, &request, None, &source_id).await
}

pub(super) async fn to_application(
    state: Data<State>,
    request: HttpRequest,
    ids: Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    let (application_id, source_id) = ids.into_inner();
    answer(&state, &request, Some(&application_id), &source_id).await
}

async fn answer(
    state: &State,
    request: &HttpRequest,
    application_id: Option<&str>,
    source_id: &str,
) -> Result<HttpResponse, Problem> {
    state.spend_of_source(request).await?;
    let gateway = find(state, application_id, source_id).await?;
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    match challenge::of_get(&gateway.scheme, target) {
        Some(challenge) => Ok(given_back(challenge)),
        None => Err(Problem::new(Code::SignatureInvalid)),
    }
}

/// The challenge as plain text, which no browser runs.
pub(super) fn given_back(challenge: String) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(ContentType::plaintext())
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .body(challenge)
}
