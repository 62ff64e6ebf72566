//! `POST /v1/endpoints/{endpoint_id}/submissions`: stores a payload together with its delivery.
//!
//! 202 is answered only after the commit. The order of the checks is fixed: the caller, the body's
//! limit, the budgets of source and key, the endpoint and its budget ([`crate::admission`]), then the
//! idempotency key, the event type, the content type, and whether a payload that is declared to be JSON is
//! JSON. The bytes are kept as they came.

use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use domain::id::{DeliveryId, SubmissionId};
use domain::submission::content::declared_json_parses;
use domain::submission::{ContentType, EventType, IdempotencyKey};
use serde::Serialize;
use store::submission::{Accepted, NewSubmission};
use utoipa::ToSchema;

use super::{
    Repeated, State, describe_idempotency_key, idempotency_key, record_in_span, refused, single,
    store,
};
use crate::admission::Admitted;
use crate::fields::malformed_json;
use crate::instant::Instant;
use crate::openapi::Doc;
use crate::openapi::schema::{self, anything, binary, text};
use crate::problem::{Code, Problem};
use crate::request_log::id_of;

const EVENT_TYPE: &str = "Fencepost-Event-Type";
pub(in crate::routes) const IDEMPOTENT_REPLAYED: HeaderName =
    HeaderName::from_static("idempotent-replayed");
pub(in crate::routes) const IDEMPOTENT_REPLAYED_ABOUT: &str =
    "`true` if this is the original answer of the idempotency key.";

#[derive(Serialize, ToSchema)]
pub(super) struct AcceptedSubmission {
    #[schema(value_type = Uuid)]
    submission_id: SubmissionId,
    endpoint_id: String,
    received_at: Instant,
    #[schema(value_type = Vec<Uuid>)]
    delivery_ids: Vec<DeliveryId>,
    replayed: bool,
}

pub(super) fn doc() -> Doc {
    let about = "Any bytes of any content type, which are kept as they are. What is declared to be \
                 JSON must be JSON. Without a content type they are `application/octet-stream`.";
    describe_idempotency_key(Doc::of("submit", "Stores a payload together with its delivery"))
        .header(EVENT_TYPE, "What the submission tells of.", schema::event_type())
        .takes_any_of(
            about,
            [
                ("application/json", anything().build()),
                ("text/plain", text().build()),
                ("application/octet-stream", binary().build()),
            ]
            .map(|(kind, schema)| (kind, schema.into())),
        )
        .answers::<AcceptedSubmission>(202, "It is stored, and will be delivered")
        .with_header(IDEMPOTENT_REPLAYED.as_str(), IDEMPOTENT_REPLAYED_ABOUT)
        .refuses([Code::EventTypeInvalid, Code::ContentTypeMalformed, Code::JsonMalformed])
        .refuses([Code::RateLimited, Code::Overloaded])
}

pub(super) async fn accept(
    admitted: Admitted,
    state: Data<State>,
    request: HttpRequest,
    endpoint_id: Path<String>,
) -> Result<HttpResponse, Problem> {
    let submission = parse(request.headers(), admitted)?.under(id_of(&request));
    let (accepted, replayed) = store(&state, submission).await?;
    Ok(accepted_answer(accepted, &endpoint_id, replayed))
}

/// The answer to a submission of that endpoint.
pub(super) fn accepted_answer(
    accepted: Accepted,
    endpoint_id: &str,
    replayed: bool,
) -> HttpResponse {
    record_in_span(&accepted, endpoint_id);
    let mut response = HttpResponse::Accepted();
    if replayed {
        response.insert_header((IDEMPOTENT_REPLAYED, HeaderValue::from_static("true")));
    }
    response.json(AcceptedSubmission {
        submission_id: accepted.submission,
        endpoint_id: endpoint_id.to_owned(),
        received_at: Instant(accepted.received_at),
        delivery_ids: accepted.deliveries,
        replayed,
    })
}

fn parse(
    headers: &HeaderMap,
    Admitted { endpoint, payload }: Admitted,
) -> Result<NewSubmission, Problem> {
    let idempotency_key = idempotency_key(headers, IdempotencyKey::parse)?;
    let event_type = event_type(headers)?;
    let content_type = content_type(headers)?;
    declared_json_parses(&content_type, &payload)
        .map_err(|error| malformed_json(error.line, error.column, &error.to_string()))?;
    Ok(NewSubmission::new(endpoint, idempotency_key, event_type, content_type, payload))
}

fn event_type(headers: &HeaderMap) -> Result<Option<EventType>, Problem> {
    let refuse = |code, message| refused(Code::EventTypeInvalid, EVENT_TYPE, code, message);
    match single(headers, EVENT_TYPE) {
        Ok(None) => Ok(None),
        // A byte that is not UTF-8 becomes a character that no event type has.
        Ok(Some(value)) => EventType::parse(&String::from_utf8_lossy(value.as_bytes()))
            .map(Some)
            .map_err(|error| refuse(error.code(), error.to_string())),
        Err(Repeated) => Err(refuse("event_type_repeated", "is given more than once".to_owned())),
    }
}

fn content_type(headers: &HeaderMap) -> Result<ContentType, Problem> {
    let refuse = |code, message| refused(Code::ContentTypeMalformed, "Content-Type", code, message);
    match single(headers, CONTENT_TYPE.as_str()) {
        Ok(None) => Ok(ContentType::default()),
        Ok(Some(value)) => ContentType::parse(value.as_bytes())
            .map_err(|error| refuse(error.code(), error.to_string())),
        Err(Repeated) => Err(refuse("content_type_repeated", "is given more than once".to_owned())),
    }
}
