//! `POST /v1/deliveries/{delivery_id}/cancel`: calls a delivery off.
//!
//! What is owed or replayable is cancelled at once. What a worker has is marked: its request may be
//! out, so its report still counts, and without a 2xx the delivery is cancelled with it.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use domain::delivery::StateName;
use domain::id::DeliveryId;
use serde::Serialize;
use store::delivery::Cancellation;
use utoipa::ToSchema;

use super::{State, parse_id};
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::openapi::schema::DeliveryState;
use crate::problem::{Code, Extension, Problem};

#[derive(Serialize, ToSchema)]
struct CancelledDelivery {
    #[schema(value_type = Uuid)]
    id: DeliveryId,
    #[schema(value_type = DeliveryState)]
    state: &'static str,
    /// Whether it is cancelled only when its worker reports.
    cancel_requested: bool,
}

pub(super) fn doc() -> Doc {
    Doc::of("cancel_delivery", "Calls a delivery off")
        .about("What a worker has is marked: its request may be out, so its report still counts.")
        .answers::<CancelledDelivery>(200, "It is cancelled")
        .answers::<CancelledDelivery>(202, "A worker has it: it is cancelled with its report")
        .refuses([Code::DeliveryNotCancellable])
}

pub(super) async fn cancel(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    delivery_id: Path<String>,
) -> Result<HttpResponse, Problem> {
    refuse_query(&request)?;
    let id = parse_id(&delivery_id)?;
    tracing::Span::current().record("delivery.id", tracing::field::display(id));
    let body = |state: StateName, cancel_requested| CancelledDelivery {
        id,
        state: state.as_str(),
        cancel_requested,
    };
    match state.store.cancel_delivery(caller.application, id).await? {
        Cancellation::Cancelled => Ok(HttpResponse::Ok().json(body(StateName::Cancelled, false))),
        Cancellation::Requested => {
            Ok(HttpResponse::Accepted().json(body(StateName::Processing, true)))
        }
        Cancellation::NotCancellable(state) => Err(Problem::new(Code::DeliveryNotCancellable)
            .extended(Extension::State { state: state.as_str() })),
        Cancellation::Missing => Err(Problem::new(Code::DeliveryNotFound)),
    }
}
