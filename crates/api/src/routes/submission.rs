//! Submissions.

pub(super) mod accept;
mod erase;
mod get;
mod list;
mod payload;
mod ping;

use domain::id::{ApplicationKey, DeliveryId, SubmissionId};
use serde::Serialize;
use store::api_key::Role;
use store::submission::Submission;
use uuid::Uuid;

use super::{Access, Call, Repeated, State, endpoint, single};
use crate::instant::Instant;
use crate::problem::{Code, Problem};

pub(super) fn calls() -> Vec<Call> {
    vec![
        Call::post("/v1/endpoints/{endpoint_id}/ping", Access::Key(Role::Publish), ping::ping),
        Call::post(
            "/v1/endpoints/{endpoint_id}/submissions",
            Access::Key(Role::Publish),
            accept::accept,
        ),
        Call::get("/v1/submissions", Access::Key(Role::Read), list::list),
        Call::get("/v1/submissions/{submission_id}", Access::Key(Role::Read), get::get),
        // Who submits knows payloads; a key that only reads is for dashboards and monitors.
        Call::get(
            "/v1/submissions/{submission_id}/payload",
            Access::Key(Role::Publish),
            payload::payload,
        ),
        Call::delete(
            "/v1/submissions/{submission_id}/payload",
            Access::Key(Role::Admin),
            erase::erase,
        ),
    ]
}

/// A submission as it is answered, without its payload.
#[derive(Debug, Serialize)]
struct SubmissionBody {
    id: SubmissionId,
    webhook_id: Uuid,
    /// The submission that it resends.
    resend_of: Option<SubmissionId>,
    endpoint_id: String,
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
