//! `GET /v1/deliveries?endpoint_id&state&limit`: newest first.

use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, Responder};
use domain::delivery::StateName;
use store::delivery::DeliveryFilter;

use super::{DeliveryBody, State, endpoint};
use crate::auth::Caller;
use crate::fields::{Fault, Fields};
use crate::list::{List, take_page};
use crate::problem::Problem;

pub(super) async fn list(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
) -> Result<impl Responder, Problem> {
    let mut fields = Fields::of_query(&request);
    let page = take_page(&mut fields);
    let endpoint_id = endpoint::take_filter(&mut fields);
    let named = fields.optional("state", |text| StateName::parse(text).ok_or(StateUnknown));
    fields.finish(Some(()))?;
    let application = caller.application;
    let endpoint = endpoint::find_filtered(&state, application, endpoint_id).await?;
    let filter = DeliveryFilter { application, endpoint, state: named, page };
    let deliveries = state.store.list_deliveries(filter).await?;
    Ok(Json(List::of(deliveries, DeliveryBody::from)))
}

struct StateUnknown;

impl Fault for StateUnknown {
    fn code(&self) -> &'static str {
        "state_unknown"
    }

    fn message(&self) -> String {
        let names = StateName::ALL.map(StateName::as_str);
        format!("must be one of {}", names.join(", "))
    }
}
