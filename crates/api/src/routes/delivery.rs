//! Deliveries.

mod attempt;
mod cancel;
mod get;
mod list;
mod replay;
mod resend;

use domain::delivery::{CancelReason, FailureReason};
use domain::id::{DeliveryId, SubmissionId};
use serde::Serialize;
use store::api_key::Role;
use store::delivery::DeliveryView;

use utoipa::ToSchema;

use super::{Access, Call, State, endpoint};
use crate::instant::Instant;
use crate::openapi::schema::DeliveryState;
use crate::problem::{Code, Problem};

pub(super) fn calls() -> Vec<Call> {
    vec![
        Call::get("/v1/deliveries", Access::Key(Role::Read), list::doc(), list::list),
        Call::get("/v1/deliveries/{delivery_id}", Access::Key(Role::Read), get::doc(), get::get),
        Call::post(
            "/v1/deliveries/{delivery_id}/cancel",
            Access::Key(Role::Admin),
            cancel::doc(),
            cancel::cancel,
        ),
        Call::post(
            "/v1/deliveries/{delivery_id}/replay",
            Access::Key(Role::Admin),
            replay::doc(),
            replay::replay,
        ),
        Call::post(
            "/v1/deliveries/{delivery_id}/resend",
            Access::Key(Role::Admin),
            resend::doc(),
            resend::resend,
        ),
    ]
}

/// A delivery as it is answered, without its attempts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
struct DeliveryBody {
    #[schema(value_type = Uuid)]
    id: DeliveryId,
    endpoint_id: String,
    #[schema(value_type = Uuid)]
    submission_id: SubmissionId,
    #[schema(value_type = DeliveryState)]
    state: &'static str,
    /// Why it failed, expired or was cancelled.
    reason: Option<&'static str>,
    attempt_count: u32,
    cycle_attempt_count: u32,
    lapse_count: u32,
    due_at: Option<Instant>,
    claim_expires_at: Option<Instant>,
    claimed_by: Option<String>,
    /// Whether it was called off while a worker had it: it is cancelled with the report, unless that is a 2xx.
    cancel_requested: bool,
    replayable_until: Option<Instant>,
    settled_at: Option<Instant>,
}

impl From<DeliveryView> for DeliveryBody {
    fn from(delivery: DeliveryView) -> Self {
        let failure = delivery.failure.map(FailureReason::as_str);
        let cancellation = delivery.cancellation.map(CancelReason::as_str);
        Self {
            id: delivery.id,
            endpoint_id: delivery.endpoint_id,
            submission_id: delivery.submission,
            state: delivery.state.as_str(),
            reason: failure.or(cancellation),
            attempt_count: delivery.attempts,
            cycle_attempt_count: delivery.cycle_attempts,
            lapse_count: delivery.lapses,
            due_at: delivery.due_at.map(Instant),
            claim_expires_at: delivery.claim_expires_at.map(Instant),
            claimed_by: delivery.claimed_by,
            cancel_requested: delivery.cancel_requested,
            replayable_until: delivery.replayable_until.map(Instant),
            settled_at: delivery.settled_at.map(Instant),
        }
    }
}

/// The delivery that a text names.
fn parse_id(id: &str) -> Result<DeliveryId, Problem> {
    id.parse().map_err(|_| Problem::new(Code::DeliveryNotFound))
}
