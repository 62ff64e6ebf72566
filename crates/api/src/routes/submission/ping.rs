//! `POST /v1/endpoints/{endpoint_id}/ping`: submits a small payload of ours, to see that deliveries
//! arrive.
//!
//! It is a submission like any other: signed, retried, listed, and held while the endpoint is paused or
//! disabled. `Idempotency-Key` works as there.

use actix_web::web::{Bytes, Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use domain::submission::{ContentType, EventType, IdempotencyKey};
use store::submission::NewSubmission;

use super::accept::{
    AcceptedSubmission, IDEMPOTENT_REPLAYED, IDEMPOTENT_REPLAYED_ABOUT, accepted_answer,
};
use super::{State, describe_idempotency_key, endpoint, idempotency_key, store};
use crate::auth::Caller;
use crate::body;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::openapi::schema::NoFields;
use crate::problem::{Code, Problem};
use crate::request_log::id_of;

/// The event type of a ping.
const PING: &str = "fencepost.ping";

pub(super) fn doc() -> Doc {
    describe_idempotency_key(Doc::of(
        "ping",
        "Submits a `fencepost.ping`, to see that deliveries arrive",
    ))
    .may_take::<NoFields>()
    .answers::<AcceptedSubmission>(202, "It is stored, and will be delivered")
    .with_header(IDEMPOTENT_REPLAYED.as_str(), IDEMPOTENT_REPLAYED_ABOUT)
    .refuses([Code::Overloaded])
}

pub(super) async fn ping(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    endpoint_id: Path<String>,
    payload: Payload,
) -> Result<HttpResponse, Problem> {
    refuse_query(&request)?;
    body::read_no_fields(&request, payload, state.management_limit()).await?;
    let endpoint = endpoint::find(&state, caller.application, &endpoint_id).await?;
    let key = idempotency_key(request.headers(), IdempotencyKey::parse)?;
    let event_type = EventType::parse(PING).map_err(Problem::internal)?;
    let content_type = ContentType::parse(b"application/json").map_err(Problem::internal)?;
    // Nothing in it changes from ping to ping: two with one idempotency key have the same content.
    let data = serde_json::json!({"endpoint_id": endpoint.id.as_str()});
    let payload = Bytes::from(serde_json::json!({"type": PING, "data": data}).to_string());
    let submission = NewSubmission::new(endpoint.key, key, Some(event_type), content_type, payload);
    let submission = submission.under(id_of(&request));
    let (accepted, replayed) = store(&state, submission).await?;
    Ok(accepted_answer(accepted, &endpoint_id, replayed))
}
