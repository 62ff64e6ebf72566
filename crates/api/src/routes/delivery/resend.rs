//! `POST /v1/deliveries/{delivery_id}/resend`: sends what a delivery brought once more, as a new
//! submission with the same bytes and the same `webhook-id`.
//!
//! The bytes are copied inside the database and are not read here.

use actix_web::http::header::HeaderValue;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use domain::id::{DeliveryId, SubmissionId};
use domain::submission::IdempotencyKey;
use serde::Serialize;
use store::submission::{NewResend, Resend, Resent};
use utoipa::ToSchema;

use super::super::submission::accept::{IDEMPOTENT_REPLAYED, IDEMPOTENT_REPLAYED_ABOUT};
use super::super::submission::{describe_idempotency_key, idempotency_key};
use super::{State, parse_id};
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::instant::Instant;
use crate::openapi::Doc;
use crate::problem::{Code, Problem};
use crate::request_log::id_of;

#[derive(Serialize, ToSchema)]
struct ResentSubmission {
    #[schema(value_type = Uuid)]
    submission_id: SubmissionId,
    endpoint_id: String,
    received_at: Instant,
    #[schema(value_type = Vec<Uuid>)]
    delivery_ids: Vec<DeliveryId>,
    #[schema(value_type = Uuid)]
    resend_of: SubmissionId,
    replayed: bool,
}

pub(super) fn doc() -> Doc {
    let doc =
        Doc::of("resend_delivery", "Sends what a delivery brought once more, as a new submission");
    describe_idempotency_key(doc)
        .about("The new submission has the same bytes and the same `webhook-id`.")
        .answers::<ResentSubmission>(202, "The new submission")
        .with_header(IDEMPOTENT_REPLAYED.as_str(), IDEMPOTENT_REPLAYED_ABOUT)
        .refuses([Code::EndpointDisabled, Code::PayloadErased, Code::PayloadExpired])
}

pub(super) async fn resend(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    delivery_id: Path<String>,
) -> Result<HttpResponse, Problem> {
    refuse_query(&request)?;
    let id = parse_id(&delivery_id)?;
    tracing::Span::current().record("delivery.id", tracing::field::display(id));
    let key = idempotency_key(request.headers(), IdempotencyKey::parse)?;
    let new = NewResend::new(caller.application, id, key).under(id_of(&request));
    match state.store.resend(&new).await? {
        Resend::Accepted(resent) => {
            state.waker.wake_to_look();
            Ok(answer(resent, false))
        }
        Resend::Replayed(original) => Ok(answer(original, true)),
        Resend::Conflicted => Err(Problem::new(Code::IdempotencyKeyReused)),
        Resend::KeyInProgress => Err(Problem::new(Code::IdempotencyKeyInProgress)),
        Resend::EndpointDisabled => Err(Problem::new(Code::EndpointDisabled)),
        Resend::PayloadErased => Err(Problem::new(Code::PayloadErased)),
        Resend::PayloadExpired => Err(Problem::new(Code::PayloadExpired)),
        Resend::Missing => Err(Problem::new(Code::DeliveryNotFound)),
    }
}

fn answer(resent: Resent, replayed: bool) -> HttpResponse {
    let Resent { accepted, endpoint_id, resend_of } = resent;
    let span = tracing::Span::current();
    span.record("endpoint.id", &endpoint_id);
    span.record("submission.id", tracing::field::display(accepted.submission));
    let mut response = HttpResponse::Accepted();
    if replayed {
        response.insert_header((IDEMPOTENT_REPLAYED, HeaderValue::from_static("true")));
    }
    response.json(ResentSubmission {
        submission_id: accepted.submission,
        endpoint_id,
        received_at: Instant(accepted.received_at),
        delivery_ids: accepted.deliveries,
        resend_of,
        replayed,
    })
}
