//! `POST /v1/endpoints/{endpoint_id}/pause`: lets nothing be sent for a while.
//!
//! The body names the end, `{"for": "10m"}` or `{"until": "2026-12-01T06:00:00Z"}`. Without one, or
//! without a body, the endpoint is paused until it is enabled, shown as the last second of the year
//! 9999. What is submitted meanwhile is accepted and held; what was claimed already is still sent.

use actix_web::web::{Data, Json, Path, Payload};
use actix_web::{HttpRequest, Responder};
use domain::endpoint::PAUSE_MAX;
use domain::id::PublicId;
use serde_json::Value;
use store::endpoint::{PAUSED_FOR_GOOD, Pause};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::fields::duration;
use super::{EndpointBody, State};
use crate::auth::Caller;
use crate::body;
use crate::fields::{Fields, Refusal, refuse_query};
use crate::openapi::Doc;
use crate::openapi::schema::{self, named};
use crate::problem::{Code, Problem};

named! {
    /// For how long, one of the two. Without any, until it is enabled.
    NewPause => schema::closed_object()
        .property("for", schema::duration("Up to `366d`."))
        .property("until", schema::date_time())
        .max_properties(Some(1));
}

pub(super) fn doc() -> Doc {
    Doc::of("pause_endpoint", "Lets nothing be sent for a while")
        .about(
            "What is submitted meanwhile is held. Without an end it lasts until the endpoint is \
                enabled, shown as the last second of the year 9999.",
        )
        .may_take::<NewPause>()
        .answers::<EndpointBody>(200, "The endpoint")
}

pub(super) async fn pause(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    endpoint_id: Path<String>,
    payload: Payload,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    let missing = || Problem::new(Code::EndpointNotFound);
    let id = PublicId::parse(&endpoint_id).map_err(|_| missing())?;
    let body = body::read_optional_json(&request, payload, state.management_limit()).await?;
    let pause = body.map_or(Ok(Pause::ForGood), |body| parse(&body))?;
    let paused = state.store.pause_endpoint(caller.application, &id, pause).await?;
    Ok(Json(EndpointBody::read(&state, paused.ok_or_else(missing)?).await?))
}

fn parse(body: &[u8]) -> Result<Pause, Problem> {
    let mut fields = Fields::of_body(body)?;
    let length = fields.value("for", |value| match duration(value)? {
        length if length > PAUSE_MAX => {
            Err(Refusal::new("setting_out_of_range", "must be at most 366d"))
        }
        length => Ok(length),
    });
    let until = fields.value("until", instant);
    if until.is_some() && length.is_some() {
        fields.refuse("until", "field_excluded", "cannot be given beside `for`");
    }
    let until = until.map(Pause::Until);
    fields.finish(Some(until.or(length.map(Pause::For)).unwrap_or(Pause::ForGood)))
}

fn instant(value: &Value) -> Result<OffsetDateTime, Refusal> {
    let refused = || {
        let form =
            "must be an instant such as \"2026-12-01T06:00:00Z\" (RFC 3339), at most in 9999";
        Refusal::new("instant_malformed", form)
    };
    let text = value.as_str().ok_or_else(refused)?;
    let instant = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| refused())?;
    let in_range = (OffsetDateTime::UNIX_EPOCH..=PAUSED_FOR_GOOD).contains(&instant);
    if in_range { Ok(instant) } else { Err(refused()) }
}
