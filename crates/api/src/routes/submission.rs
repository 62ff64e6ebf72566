//! Submissions.

pub(super) mod accept;
mod erase;
mod get;
mod list;
mod payload;
mod ping;

use actix_web::http::header::HeaderMap;
use domain::id::{ApplicationKey, DeliveryId, SubmissionId};
use domain::submission::IdempotencyKey;
use domain::submission::idempotency_key::{IdempotencyKeyError, KEY_BYTES_MAX};
use serde::Serialize;
use store::api_key::Role;
use store::submission::{Acceptance, Accepted, NewSubmission, Submission};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Access, Call, Repeated, State, endpoint, single};
use crate::instant::Instant;
use crate::openapi::Doc;
use crate::openapi::schema::text;
use crate::problem::{Code, FieldError, Problem};

const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

pub(super) fn calls() -> Vec<Call> {
    vec![
        Call::post(
            "/v1/endpoints/{endpoint_id}/ping",
            Access::Key(Role::Publish),
            ping::doc(),
            ping::ping,
        ),
        Call::post(
            "/v1/endpoints/{endpoint_id}/submissions",
            Access::Submission,
            accept::doc(),
            accept::accept,
        ),
        Call::get("/v1/submissions", Access::Key(Role::Read), list::doc(), list::list),
        Call::get("/v1/submissions/{submission_id}", Access::Key(Role::Read), get::doc(), get::get),
        // Who submits knows payloads; a key that only reads is for dashboards and monitors.
        Call::get(
            "/v1/submissions/{submission_id}/payload",
            Access::Key(Role::Publish),
            payload::doc(),
            payload::payload,
        ),
        Call::delete(
            "/v1/submissions/{submission_id}/payload",
            Access::Key(Role::Admin),
            erase::doc(),
            erase::erase,
        ),
    ]
}

/// A submission as it is answered, without its payload.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Submission)]
struct SubmissionBody {
    #[schema(value_type = Uuid)]
    id: SubmissionId,
    webhook_id: Uuid,
    /// The submission that it resends.
    #[schema(value_type = Option<Uuid>)]
    resend_of: Option<SubmissionId>,
    endpoint_id: String,
    #[schema(value_type = Vec<Uuid>)]
    delivery_ids: Vec<DeliveryId>,
    event_type: Option<String>,
    content_type: String,
    payload_bytes: u64,
    received_at: Instant,
    /// When the payload was erased.
    payload_erased_at: Option<Instant>,
}

impl From<Submission> for SubmissionBody {
    fn from(submission: Submission) -> Self {
        Self {
            id: submission.id,
            webhook_id: submission.webhook_id,
            resend_of: submission.resend_of,
            endpoint_id: submission.endpoint_id,
            delivery_ids: submission.deliveries,
            event_type: submission.event_type,
            content_type: submission.content_type,
            payload_bytes: submission.payload_bytes,
            received_at: Instant(submission.received_at),
            payload_erased_at: submission.erased_at.map(Instant),
        }
    }
}

/// The submission of an application that a text names.
async fn find(state: &State, application: ApplicationKey, id: &str) -> Result<Submission, Problem> {
    let missing = || Problem::new(Code::SubmissionNotFound);
    let id: SubmissionId = id.parse().map_err(|_| missing())?;
    state.store.find_submission(application, id).await?.ok_or_else(missing)
}

/// Stores a submission. Answers what its key stands for, and whether that was there before.
pub(super) async fn store(
    state: &State,
    submission: NewSubmission,
) -> Result<(Accepted, bool), Problem> {
    match state.committer.accept(submission).await? {
        Acceptance::Accepted(accepted) => Ok((accepted, false)),
        Acceptance::Replayed(original) => Ok((original, true)),
        Acceptance::Conflicted => Err(Problem::new(Code::IdempotencyKeyReused)),
        Acceptance::KeyInProgress => Err(Problem::new(Code::IdempotencyKeyInProgress)),
        Acceptance::EndpointMissing => Err(Problem::new(Code::EndpointNotFound)),
    }
}

/// Names in the log what was stored.
pub(super) fn record_in_span(accepted: &Accepted, endpoint_id: &str) {
    let span = tracing::Span::current();
    span.record("endpoint.id", endpoint_id);
    span.record("submission.id", tracing::field::display(accepted.submission));
}

/// The idempotency key of a request, if it has one.
pub(super) fn idempotency_key(
    headers: &HeaderMap,
    parse: impl FnOnce(&[u8]) -> Result<IdempotencyKey, IdempotencyKeyError>,
) -> Result<Option<IdempotencyKey>, Problem> {
    let refuse =
        |code, message| refused(Code::IdempotencyKeyInvalid, IDEMPOTENCY_KEY, code, message);
    match single(headers, IDEMPOTENCY_KEY) {
        Ok(None) => Ok(None),
        Ok(Some(value)) => parse(value.as_bytes())
            .map(Some)
            .map_err(|error| refuse(error.code(), error.to_string())),
        Err(Repeated) => {
            Err(refuse("idempotency_key_repeated", "is given more than once".to_owned()))
        }
    }
}

/// It as it stands in the description of a call, with what becomes of it.
pub(super) fn describe_idempotency_key(doc: Doc) -> Doc {
    let about = "Names this submission: with the same key and content the original answer is given, \
                 and nothing is stored twice.";
    let key = text().min_length(Some(1)).max_length(Some(KEY_BYTES_MAX)).pattern(Some("^[!-~]+$"));
    doc.header(IDEMPOTENCY_KEY, about, key).refuses([
        Code::IdempotencyKeyInvalid,
        Code::IdempotencyKeyReused,
        Code::IdempotencyKeyInProgress,
    ])
}

/// A header breaks a rule.
fn refused(code: Code, header: &'static str, rule: &'static str, message: String) -> Problem {
    Problem::of_fields(code, vec![FieldError::new(header, rule, message)])
}
