//! `POST /v1/deliveries/{delivery_id}/replay`: puts a failed delivery back into the queue.
//!
//! Nothing is sent here. Of several operators at once the database lets one win.

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, Responder};
use domain::delivery::StateName;
use domain::id::DeliveryId;
use serde::Serialize;
use store::delivery::Replay;
use utoipa::ToSchema;

use super::{State, parse_id};
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::openapi::schema::DeliveryState;
use crate::problem::{Code, Extension, Problem};

#[derive(Serialize, ToSchema)]
struct ReplayedDelivery {
    #[schema(value_type = Uuid)]
    id: DeliveryId,
    #[schema(value_type = DeliveryState)]
    state: &'static str,
}

pub(super) fn doc() -> Doc {
    Doc::of("replay_delivery", "Puts a failed delivery back into the queue")
        .about("The same delivery with a fresh cycle of attempts. Of several at once one succeeds.")
        .answers::<ReplayedDelivery>(200, "It is pending again")
        .refuses([Code::DeliveryNotReplayable, Code::EndpointDisabled, Code::DeliveryExpired])
        .refuses([Code::PayloadErased, Code::PayloadExpired])
}

pub(super) async fn replay(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    delivery_id: Path<String>,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    let id = parse_id(&delivery_id)?;
    tracing::Span::current().record("delivery.id", tracing::field::display(id));
    match state.store.replay_failed(caller.application, id).await? {
        Replay::Replayed => {
            state.waker.wake_to_look();
            Ok(Json(ReplayedDelivery { id, state: StateName::Pending.as_str() }))
        }
        Replay::NotReplayable(state) => Err(Problem::new(Code::DeliveryNotReplayable)
            .extended(Extension::State { state: state.as_str() })),
        Replay::EndpointDisabled => Err(Problem::new(Code::EndpointDisabled)),
        Replay::PayloadErased => Err(Problem::new(Code::PayloadErased)),
        Replay::PayloadExpired => Err(Problem::new(Code::PayloadExpired)),
        Replay::Expired => Err(Problem::new(Code::DeliveryExpired)),
        Replay::Missing => Err(Problem::new(Code::DeliveryNotFound)),
    }
}
