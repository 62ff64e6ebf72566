//! `GET /v1/deliveries?endpoint_id&state&created_after&created_before&limit&cursor`: newest
//! first.

use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, Responder};
use domain::delivery::StateName;
use store::delivery::DeliveryFilter;
use utoipa::PartialSchema;

use super::{DeliveryBody, State, endpoint};
use crate::auth::Caller;
use crate::fields::{Fault, Fields};
use crate::list::{Binding, Paging};
use crate::openapi::Doc;
use crate::openapi::schema::DeliveryState;
use crate::problem::Problem;
use crate::routes::created::{describe_created, take_created, written};

pub(super) fn doc() -> Doc {
    describe_created(endpoint::describe_filter(Doc::of(
        "list_deliveries",
        "Lists deliveries, newest first",
    )))
    .query("state", "Only those in this state.", DeliveryState::schema())
    .answers_list::<DeliveryBody>("Deliveries, without their attempts")
}

pub(super) async fn list(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
) -> Result<impl Responder, Problem> {
    let mut fields = Fields::of_query(&request);
    let paging = Paging::take(&mut fields);
    let endpoint_id = endpoint::take_filter(&mut fields);
    let named = fields.optional("state", |text| StateName::parse(text).ok_or(StateUnknown));
    let created = take_created(&mut fields);
    fields.finish(Some(()))?;
    let application = caller.application;
    let endpoint = endpoint::find_filtered(&state, application, endpoint_id).await?;
    let narrowed = [
        endpoint.map(|it| it.to_string()),
        named.map(|it| it.as_str().to_owned()),
        written(created.from),
        written(created.below),
    ];
    let binding = Binding::of("deliveries", application, &narrowed);
    let page = paging.page(binding)?;
    let filter = DeliveryFilter { application, endpoint, state: named, created, page };
    let deliveries = state.store.list_deliveries(filter).await?;
    Ok(Json(paging.list(binding, deliveries, |row| row.id.as_uuid(), DeliveryBody::from)))
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
