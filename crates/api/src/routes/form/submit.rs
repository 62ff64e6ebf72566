//! `POST /f/{endpoint_id}` and `POST /f/{application_id}/{endpoint_id}`: a form of a web page becomes
//! a submission, without a key, where the endpoint allows it.
//!
//! The payload is a JSON object in which every value is a list of texts, the event type is
//! `form.submitted`. Nobody learns whether an endpoint exists that does not take forms: all answers
//! for one are those for none. A visitor is told the id of the submission and nothing else. There are
//! no CORS headers: a page sends its form as a form, and does not read the answer with a script.

use actix_web::http::header::HeaderMap;
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::{ApplicationKey, PublicId, SubmissionId};
use domain::submission::idempotency_key::{VISITOR_KEY_BYTES_MAX, VISITOR_KEY_BYTES_MIN};
use domain::submission::{ContentType, EventType, IdempotencyKey};
use serde::Serialize;
use store::endpoint::Endpoint;
use store::submission::NewSubmission;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::{State, endpoint, read, submission};
use crate::body::{self, BodyLimit};
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::openapi::schema::text;
use crate::problem::{Code, Problem};
use crate::request_log::id_of;

#[derive(Serialize, ToSchema)]
struct TakenForm {
    #[schema(value_type = Uuid)]
    submission_id: SubmissionId,
}

pub(super) fn doc_of_default() -> Doc {
    doc(Doc::of("submit_form", "Takes a form of a web page, for an endpoint of `default`"))
}

pub(super) fn doc_of_application() -> Doc {
    doc(Doc::of("submit_form_of_application", "Takes a form of a web page"))
}

fn doc(doc: Doc) -> Doc {
    let about = "The fields of a form, texts only.";
    let kinds = ["application/x-www-form-urlencoded", "multipart/form-data"];
    let fields =
        || ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(text()));
    let key = text()
        .min_length(Some(VISITOR_KEY_BYTES_MIN))
        .max_length(Some(VISITOR_KEY_BYTES_MAX))
        .pattern(Some("^[!-~]+$"));
    doc.about(
        "Without a key, where the endpoint allows it. The payload becomes a JSON object with a \
               list of texts for each name.",
    )
    .header("Idempotency-Key", "Names this submission; all visitors share these names.", key)
    .takes_any_of(about, kinds.map(|kind| (kind, fields().into())))
    .answers::<TakenForm>(202, "It is stored, and will be delivered")
    .refuses([Code::QueryInvalid, Code::RateLimited, Code::Overloaded])
    .refuses([Code::IdempotencyKeyInvalid, Code::IdempotencyKeyReused])
    .refuses([Code::IdempotencyKeyInProgress, Code::DatabaseUnavailable, Code::Internal])
    .refuses([Code::FormTypeUnsupported, Code::FormCharsetUnsupported, Code::FormMalformed])
    .refuses([Code::FormFileRefused, Code::FormFieldsTooMany, Code::FormNameMissing])
    .refuses([Code::FormNameTooLong, Code::FormValueTooLong, Code::FormEncodingInvalid])
}

pub(super) async fn to_default(
    state: Data<State>,
    request: HttpRequest,
    endpoint_id: Path<String>,
    payload: Payload,
) -> Result<HttpResponse, Problem> {
    submit(&state, &request, None, &endpoint_id, payload).await
}

pub(super) async fn to_application(
    state: Data<State>,
    request: HttpRequest,
    ids: Path<(String, String)>,
    payload: Payload,
) -> Result<HttpResponse, Problem> {
    let (application_id, endpoint_id) = ids.into_inner();
    submit(&state, &request, Some(&application_id), &endpoint_id, payload).await
}

async fn submit(
    state: &State,
    request: &HttpRequest,
    application_id: Option<&str>,
    endpoint_id: &str,
    payload: Payload,
) -> Result<HttpResponse, Problem> {
    refuse_query(request)?;
    let limit = state.payload_limit();
    let body = body::read(request, payload, limit).await?;
    state.spend_of_source(request).await?;
    let endpoint = find(state, application_id, endpoint_id).await?;
    state.spend_of_endpoint(&endpoint).await?;
    let form = read::form(request.headers(), &body, state.settings.form)?;
    let submission = submission_of(request.headers(), &endpoint, form.to_json(), limit)?;
    let submission = submission.under(id_of(request));
    let (accepted, _) = submission::store(state, submission).await?;
    submission::record_in_span(&accepted, endpoint_id);
    Ok(HttpResponse::Accepted().json(TakenForm { submission_id: accepted.submission }))
}

/// The endpoint, if it takes forms.
async fn find(
    state: &State,
    application_id: Option<&str>,
    endpoint_id: &str,
) -> Result<Endpoint, Problem> {
    let missing = || Problem::new(Code::EndpointNotFound);
    let application = match application_id {
        Some(id) => find_application(state, id).await?.ok_or_else(missing)?,
        None => DEFAULT_APPLICATION_KEY,
    };
    let endpoint = endpoint::find(state, application, endpoint_id).await?;
    if endpoint.settings.public_ingest() { Ok(endpoint) } else { Err(missing()) }
}

async fn find_application(state: &State, id: &str) -> Result<Option<ApplicationKey>, Problem> {
    let Ok(id) = PublicId::parse(id) else { return Ok(None) };
    Ok(state.store.find_application(&id).await?)
}

fn submission_of(
    headers: &HeaderMap,
    endpoint: &Endpoint,
    json: String,
    limit: BodyLimit,
) -> Result<NewSubmission, Problem> {
    // Escapes make it longer than the form was.
    if json.len() > limit.bytes {
        return Err(body::too_large(limit));
    }
    let key = submission::idempotency_key(headers, IdempotencyKey::parse_of_visitor)?;
    let (event_type, content_type) = (EventType::of_form(), ContentType::json());
    Ok(NewSubmission::new(endpoint.key, key, Some(event_type), content_type, json.into()))
}
