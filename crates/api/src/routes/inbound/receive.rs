//! `POST /in/{source_id}`: an event of a source becomes a submission to the source's endpoint, once.
//!
//! 200 is answered only after the commit, without a word: to the first copy and to every other. The
//! order of the checks is fixed: the body's limit, the budget of the address, the source, the signature
//! over the bytes as they came, then whether it is only a question, the endpoint's budget, and whether a
//! body that is declared to be JSON is JSON. Whoever fails the signature learns that and nothing else;
//! the operator finds the reason on the source.

use actix_web::http::header::{
    CONTENT_TYPE, ContentType as ContentTypeHeader, HeaderValue, WWW_AUTHENTICATE,
};
use actix_web::web::{Bytes, Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use domain::label::Label;
use domain::receipt::ReceiptKey;
use domain::source::{EventId, InboundRequest, Refusal, SchemeKind, challenge};
use domain::submission::content::declared_json_parses;
use domain::submission::{ContentType, EventType};
use store::receipt::NewReceipt;
use store::source::{Gateway, NewReception, Reception};
use store::submission::NewSubmission;
use time::OffsetDateTime;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType};

use super::challenge::given_back;
use super::{State, find};
use crate::body;
use crate::fields::malformed_json;
use crate::openapi::Doc;
use crate::openapi::schema::{binary, text};
use crate::problem::{Code, Problem};
use crate::request_log::id_of;

/// The most bytes of a header that is kept.
const KEPT_BYTES_MAX: usize = 1_024;

pub(super) fn doc_of_default() -> Doc {
    doc(Doc::of("receive_event", "Takes an event of a source of `default`"))
}

pub(super) fn doc_of_application() -> Doc {
    doc(Doc::of("receive_event_of_application", "Takes an event of a source"))
}

fn doc(doc: Doc) -> Doc {
    let kinds = [
        ("application/json", ObjectBuilder::new().schema_type(SchemaType::AnyValue).build()),
        ("application/x-www-form-urlencoded", text().build()),
        ("application/octet-stream", binary().build()),
    ];
    doc.about(
        "Without a key: the sender proves itself by the scheme of the source. An event that was taken \
         before is answered as if it were new.",
    )
    .takes_any_of(
        "What the sender sends, whose bytes are kept as they are.",
        kinds.map(|(kind, schema)| (kind, schema.into())),
    )
    .answers_other(
        200,
        "text/plain",
        "It is stored, now or before, and will be delivered. Empty, but for a challenge",
        text().build().into(),
    )
    .refuses([Code::SourceNotFound, Code::SignatureInvalid, Code::EventInProgress])
    .refuses([Code::JsonMalformed, Code::RateLimited, Code::Overloaded])
    .refuses([Code::DatabaseUnavailable, Code::Internal])
}

pub(super) async fn to_default(
    state: Data<State>,
    request: HttpRequest,
    source_id: Path<String>,
    payload: Payload,
) -> Result<HttpResponse, Problem> {
    receive(&state, &request, None, &source_id, payload).await
}

pub(super) async fn to_application(
    state: Data<State>,
    request: HttpRequest,
    ids: Path<(String, String)>,
    payload: Payload,
) -> Result<HttpResponse, Problem> {
    let (application_id, source_id) = ids.into_inner();
    receive(&state, &request, Some(&application_id), &source_id, payload).await
}

async fn receive(
    state: &State,
    request: &HttpRequest,
    application_id: Option<&str>,
    source_id: &str,
    payload: Payload,
) -> Result<HttpResponse, Problem> {
    // The query is the sender's: some sign it.
    let body = body::read(request, payload, state.payload_limit()).await?;
    state.spend_of_source(request).await?;
    let gateway = find(state, application_id, source_id).await?;
    let headers: Vec<(&str, &[u8])> =
        request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    let inbound = InboundRequest { target, headers: &headers, body: &body };
    let secrets = gateway.secrets.as_ref().map_err(Problem::internal)?;
    let now = OffsetDateTime::now_utc().unix_timestamp();
    if let Err(refusal) = gateway.scheme.verify(secrets, &inbound, now) {
        return Err(refuse(state, &gateway, &refusal).await);
    }
    if let Some(challenge) = challenge::of_post(&gateway.scheme, &inbound) {
        return Ok(given_back(challenge));
    }
    state.spend_of_destination(gateway.endpoint, gateway.ingest_rate).await?;
    let mut reception = reception_of(&gateway, &inbound, body.clone())?;
    reception.submission = reception.submission.under(id_of(request));
    let id = reception.submission.id;
    match state.store.receive(&reception).await? {
        Reception::First(_) => {
            state.waker.wake([gateway.endpoint]);
            tracing::Span::current().record("submission.id", tracing::field::display(id));
        }
        Reception::Duplicate => {}
        Reception::Conflicted => {
            let (source, event) = (gateway.source, reception.receipt.key.event_id());
            tracing::warn!(%source, event, "other content came under the id of an event");
        }
        Reception::InProgress => return Err(Problem::new(Code::EventInProgress)),
        Reception::Missing => return Err(Problem::new(Code::SourceNotFound)),
    }
    Ok(HttpResponse::Ok().insert_header(ContentTypeHeader::plaintext()).finish())
}

/// Notes the reason for the operator, and tells the sender none.
async fn refuse(state: &State, gateway: &Gateway, refusal: &Refusal) -> Problem {
    if let Err(limited) = state.spend_of_refusals(gateway.source).await {
        return limited;
    }
    if let Err(error) = state.store.note_refusal(gateway.source, refusal).await {
        let error = error.chain();
        tracing::warn!(source = %gateway.source, error, "a refused request could not be noted");
    }
    let problem = Problem::new(Code::SignatureInvalid).caused_by(refusal.to_string());
    // Senders that have credentials for it show them only when they are asked (RFC 7617).
    if gateway.scheme.kind() == SchemeKind::BasicAuth {
        problem.header(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"events\""))
    } else {
        problem
    }
}

fn reception_of(
    gateway: &Gateway,
    inbound: &InboundRequest<'_>,
    body: Bytes,
) -> Result<NewReception, Problem> {
    let content_type = content_type(inbound);
    declared_json_parses(&content_type, &body)
        .map_err(|error| malformed_json(error.line, error.column, &error.to_string()))?;
    let event_id = EventId::of(&gateway.event_id, inbound);
    let key = ReceiptKey::new(&gateway.source.to_string(), event_id.as_str())
        .map_err(Problem::internal)?;
    let mut receipt = NewReceipt::new(key, &body);
    let event_type = gateway.scheme.event_type(inbound);
    receipt.action = event_type.as_deref().and_then(|text| Label::parse(text).ok());
    let signed_at = gateway.scheme.signed_at(inbound);
    receipt.sent_at = signed_at.and_then(|at| OffsetDateTime::from_unix_timestamp(at).ok());
    let event_type = event_type.and_then(|text| EventType::parse(&text).ok());
    let submission = NewSubmission::new(gateway.endpoint, None, event_type, content_type, body);
    let headers = kept(gateway, inbound);
    Ok(NewReception { source: gateway.source, receipt, headers, submission })
}

/// What the sender says that the body is; bytes of no type where that is no content type.
fn content_type(inbound: &InboundRequest<'_>) -> ContentType {
    let given = inbound.optional_header(CONTENT_TYPE.as_str()).ok().flatten();
    given.and_then(|text| ContentType::parse(text.as_bytes()).ok()).unwrap_or_default()
}

fn kept(gateway: &Gateway, inbound: &InboundRequest<'_>) -> Vec<(String, String)> {
    // What proves who sent must not lie around where submissions are read.
    let secret = gateway.scheme.secret_header();
    let named = |name: &str| {
        Some(name) != secret && gateway.headers.iter().any(|kept| kept.as_str() == name)
    };
    let headers = inbound.headers.iter().filter(|(name, _)| named(name));
    headers
        .filter_map(|(name, value)| {
            let value = value.get(..KEPT_BYTES_MAX.min(value.len()))?;
            // A database keeps no NUL in a text.
            let value = String::from_utf8_lossy(value).replace('\0', "\u{fffd}");
            Some(((*name).to_owned(), value))
        })
        .take(gateway.headers.len())
        .collect()
}
