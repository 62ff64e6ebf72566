//! `PATCH /v1/sources/{source_id}`: changes what is sent, and nothing else.
//!
//! The settings of a scheme are replaced as a whole. Which scheme it is never changes: its secrets are
//! made for it.

use actix_web::web::{Data, Json, Path, Payload};
use actix_web::{HttpRequest, Responder};
use domain::id::PublicId;
use store::source::SourceChange;

use super::fields::{SourceFields, describe};
use super::{SourceBody, State, endpoint, find};
use crate::auth::Caller;
use crate::body;
use crate::fields::{Fields, refuse_query};
use crate::openapi::Doc;
use crate::openapi::schema::{self, named};
use crate::problem::{Code, FieldError, Problem};

/// What answers show and nobody sets here.
const READ_ONLY: &[(&str, &str)] = &[
    ("id", "never changes"),
    ("path", "never changes"),
    ("refused", "counts what was refused"),
    ("refusals", "tells what was refused"),
    ("version", "rises with every change"),
    ("created_at", "never changes"),
    ("updated_at", "is set by every change"),
    ("secret", "is changed by `secrets/rotate` alone"),
];

named! {
    /// What is to change. What is left out stays.
    SourceChangeBody => describe(schema::closed_object())
        .property("endpoint_id", schema::PublicId::schema());
}

pub(super) fn doc() -> Doc {
    Doc::of("update_source", "Changes what is sent, and nothing else")
        .about("The settings of the scheme are replaced as a whole; its `type` never changes.")
        .takes::<SourceChangeBody>()
        .answers::<SourceBody>(200, "The source")
        .refuses([Code::EndpointNotFound])
}

pub(super) async fn update(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    source_id: Path<String>,
    payload: Payload,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    let body = body::read_json(&request, payload, state.management_limit()).await?;
    let source = find(&state, caller.application, &source_id).await?;
    let (endpoint_id, given) = parse(&body)?;
    if given.scheme.as_ref().is_some_and(|scheme| scheme.kind() != source.scheme.kind()) {
        let message = "its `type` never changes: create another source";
        let error = FieldError::new("scheme", "scheme_type_fixed", message);
        return Err(Problem::of_fields(Code::BodyInvalid, vec![error]));
    }
    let endpoint = match endpoint_id {
        Some(id) => Some(endpoint::find(&state, caller.application, id.as_str()).await?.key),
        None => None,
    };
    let SourceFields { name, scheme, event_id, headers } = given;
    let change = SourceChange { name, endpoint, scheme, event_id, headers };
    let updated = state.store.update_source(caller.application, &source.id, &change).await?;
    let updated = updated.ok_or_else(|| Problem::new(Code::SourceNotFound))?;
    Ok(Json(SourceBody::from(updated)))
}

fn parse(body: &[u8]) -> Result<(Option<PublicId>, SourceFields), Problem> {
    let mut fields = Fields::of_body(body)?;
    for (name, why) in READ_ONLY {
        fields.refuse_read_only(name, why);
    }
    let endpoint_id = fields.optional("endpoint_id", PublicId::parse);
    let given = SourceFields::take(&mut fields);
    fields.finish(Some((endpoint_id, given)))
}
