//! `PATCH /v1/endpoints/{endpoint_id}`: changes what is sent, and nothing else.
//!
//! Another URL mints a secret, shows it once and ends all older ones at once; the URL that the endpoint
//! has, in any spelling, changes nothing. Secrets change in no other way here. Whatever is changed
//! counts from the next claim on.

use actix_web::web::{Data, Json, Path, Payload};
use actix_web::{HttpRequest, Responder};
use domain::destination::{AddressPolicy, DestinationUrl};
use domain::id::PublicId;
use serde::Serialize;
use store::endpoint::{EndpointChange, EndpointUpdate, NewUrl};
use store::secret::generate_secret;
use utoipa::ToSchema;

use super::fields::{EndpointFields, describe, out_of_range, text};
use super::{EndpointBody, State};
use crate::auth::Caller;
use crate::body;
use crate::fields::{Fields, refuse_query};
use crate::openapi::Doc;
use crate::openapi::schema::{self, named};
use crate::problem::{Code, Problem};

/// What answers show and nobody sets here.
const READ_ONLY: &[(&str, &str)] = &[
    ("id", "never changes"),
    ("disabled_cause", "is set by `enabled`"),
    ("disabled_at", "is set by `enabled`"),
    ("circuit", "is what its results have come to; `enable` closes it"),
    ("failing", "is what its results have come to"),
    ("paused_until", "is set by `pause` and `enable`"),
    ("version", "rises with every change"),
    ("created_at", "never changes"),
    ("updated_at", "is set by every change"),
    ("public_key", "is changed by `secrets/rotate` alone"),
    ("secret", "is changed by `secrets/rotate` alone"),
];

#[derive(Serialize, ToSchema)]
struct UpdatedEndpoint {
    #[serde(flatten)]
    endpoint: EndpointBody,
    /// Of a new URL. Shown here and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    secret: Option<String>,
}

named! {
    /// What is to change. What is left out stays.
    EndpointChangeBody => describe(schema::closed_object());
}

pub(super) fn doc() -> Doc {
    Doc::of("update_endpoint", "Changes what is sent, and nothing else")
        .about("Another URL mints a secret, shows it once and ends all older ones at once.")
        .takes::<EndpointChangeBody>()
        .answers::<UpdatedEndpoint>(200, "The endpoint")
}

pub(super) async fn update(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    endpoint_id: Path<String>,
    payload: Payload,
) -> Result<impl Responder, Problem> {
    refuse_query(&request)?;
    let missing = || Problem::new(Code::EndpointNotFound);
    let id = PublicId::parse(&endpoint_id).map_err(|_| missing())?;
    let body = body::read_json(&request, payload, state.management_limit()).await?;
    let change = parse(&body, &state.settings.address_policy)?;
    match state.store.update_endpoint(caller.application, &id, &change).await? {
        EndpointUpdate::Updated { endpoint, minted } => {
            tracing::Span::current().record("endpoint.id", endpoint.id.as_str());
            let secret = change.url.filter(|_| minted).map(|new| new.secret.reveal());
            let endpoint = EndpointBody::read(&state, endpoint).await?;
            Ok(Json(UpdatedEndpoint { endpoint, secret }))
        }
        EndpointUpdate::Invalid(error) => Err(out_of_range(error)),
        EndpointUpdate::Missing => Err(missing()),
    }
}

fn parse(body: &[u8], policy: &AddressPolicy) -> Result<EndpointChange, Problem> {
    let mut fields = Fields::of_body(body)?;
    for (name, why) in READ_ONLY {
        fields.refuse_read_only(name, why);
    }
    let url = fields.value("url", |value| text(value, |url| DestinationUrl::parse(url, policy)));
    let EndpointFields { name, event_types, headers, enabled, settings } =
        EndpointFields::take(&mut fields);
    let minted = |url| {
        Ok::<_, Problem>(NewUrl { url, secret: generate_secret().map_err(Problem::internal)? })
    };
    let url = url.map(minted).transpose()?;
    fields.finish(Some(EndpointChange { url, name, event_types, headers, enabled, settings }))
}
