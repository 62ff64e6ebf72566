//! `GET /v1/submissions/{submission_id}`: what is known of a submission, without its payload, and of the
//! event that it brings.

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, Responder};
use serde::Serialize;
use store::receipt::Receipt;
use utoipa::ToSchema;

use super::{State, SubmissionBody, find};
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::instant::Instant;
use crate::openapi::Doc;
use crate::problem::Problem;

#[derive(Serialize, ToSchema)]
struct SubmissionWithReceipt {
    #[serde(flatten)]
    submission: SubmissionBody,
    /// Of the event that a source brought; null if it came another way.
    receipt: Option<ReceiptBody>,
}

/// What was kept of an event beside its body.
#[derive(Serialize, ToSchema)]
#[schema(as = Receipt)]
struct ReceiptBody {
    source_id: String,
    event_id: String,
    /// What the sender says that happened.
    action: Option<String>,
    /// The sender's own time, where it is signed.
    sent_at: Option<Instant>,
    /// The headers that the source keeps, in the order of the request; none once the payload is erased.
    headers: Vec<HeaderBody>,
    /// Whether other content came under the same id. It was not stored.
    conflicted: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = KeptHeader)]
struct HeaderBody {
    /// In small letters.
    name: String,
    value: String,
}

impl From<Receipt> for ReceiptBody {
    fn from(receipt: Receipt) -> Self {
        let headers = receipt.headers.into_iter();
        Self {
            source_id: receipt.source_id,
            event_id: receipt.event_id,
            action: receipt.action,
            sent_at: receipt.sent_at.map(Instant),
            headers: headers.map(|(name, value)| HeaderBody { name, value }).collect(),
            conflicted: receipt.conflicted,
        }
    }
}

pub(super) fn doc() -> Doc {
    Doc::of("get_submission", "Shows a submission, without its payload")
        .answers::<SubmissionWithReceipt>(200, "The submission")
}

pub(super) async fn get(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    submission_id: Path<String>,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    let submission = find(&state, caller.application, &submission_id).await?;
    let receipt = state.store.find_receipt(caller.application, submission.id).await?;
    Ok(Json(SubmissionWithReceipt {
        submission: submission.into(),
        receipt: receipt.map(ReceiptBody::from),
    }))
}
