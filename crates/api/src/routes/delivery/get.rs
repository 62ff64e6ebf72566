//! `GET /v1/deliveries/{delivery_id}`: a delivery with its attempts in order.

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, Responder};
use serde::Serialize;
use store::delivery::DeliveryDetail;
use utoipa::ToSchema;

use super::attempt::AttemptBody;
use super::{DeliveryBody, State, parse_id};
use crate::auth::Caller;
use crate::fields::refuse_query;
use crate::openapi::Doc;
use crate::problem::{Code, Problem};

#[derive(Serialize, ToSchema)]
#[schema(as = DeliveryWithAttempts)]
struct DetailBody {
    #[serde(flatten)]
    delivery: DeliveryBody,
    attempts: Vec<AttemptBody>,
}

pub(super) fn doc() -> Doc {
    Doc::of("get_delivery", "Shows a delivery with its attempts in order")
        .answers::<DetailBody>(200, "The delivery")
}

pub(super) async fn get(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    delivery_id: Path<String>,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    let id = parse_id(&delivery_id)?;
    let detail = state.store.find_delivery(caller.application, id).await?;
    let detail = detail.ok_or_else(|| Problem::new(Code::DeliveryNotFound))?;
    Ok(Json(DetailBody::from(detail)))
}

impl From<DeliveryDetail> for DetailBody {
    fn from(detail: DeliveryDetail) -> Self {
        Self {
            delivery: detail.delivery.into(),
            attempts: detail.attempts.into_iter().map(AttemptBody::from).collect(),
        }
    }
}
