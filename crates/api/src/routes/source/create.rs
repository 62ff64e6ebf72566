//! `POST /v1/sources`: creates a source.
//!
//! A secret that was made here is shown once; one that was given is not shown at all.

use actix_web::http::header::LOCATION;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use domain::application::DEFAULT_APPLICATION_KEY;
use domain::id::{ApplicationKey, PublicId};
use domain::source::{Scheme, SourceSecret};
use serde::Serialize;
use store::Page;
use store::source::{NewSource, SourceCreation, generate_source_secret};
use utoipa::ToSchema;

use super::fields::{SourceFields, describe, described_secret};
use super::{SourceBody, State, endpoint};
use crate::auth::Caller;
use crate::body;
use crate::fields::{Fields, Refusal, refuse_query};
use crate::openapi::Doc;
use crate::openapi::schema::{self, named};
use crate::problem::{Code, FieldError, Problem};

#[derive(Serialize, ToSchema)]
struct CreatedSource {
    #[serde(flatten)]
    source: SourceBody,
    /// Where the sender is to send, behind the address of this service.
    path: String,
    /// Made here. Shown here and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    secret: Option<String>,
}

named! {
    /// A source to be made.
    NewSourceBody => describe(schema::closed_object())
        .property("id", schema::PublicId::schema())
        .property("endpoint_id", schema::PublicId::schema())
        .property("secret", described_secret())
        .required("endpoint_id")
        .required("scheme");
}

pub(super) fn doc() -> Doc {
    Doc::of("create_source", "Creates a source of other people's webhooks")
        .takes::<NewSourceBody>()
        .answers::<CreatedSource>(201, "The source; a secret that was made, and never again")
        .with_header("Location", "Where it is found.")
        .refuses([Code::SourceIdTaken, Code::EndpointNotFound])
}

struct CreateSource {
    id: Option<PublicId>,
    endpoint_id: PublicId,
    scheme: Scheme,
    secret: Option<SourceSecret>,
    fields: SourceFields,
}

pub(super) async fn create(
    caller: Caller,
    state: Data<State>,
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, Problem> {
    refuse_query(&request)?;
    let body = body::read_json(&request, payload, state.management_limit()).await?;
    let asked = CreateSource::parse(&body)?;
    let endpoint = endpoint::find(&state, caller.application, asked.endpoint_id.as_str()).await?;
    let kind = asked.scheme.kind();
    let (secret, made) = match asked.secret {
        Some(secret) => (secret, false),
        None if kind.secret_is_the_customers() => {
            (generate_source_secret(kind).map_err(Problem::internal)?, true)
        }
        None => {
            let message = "is required: the sender hands out the secrets of this scheme";
            let error = FieldError::new("secret", "field_missing", message);
            return Err(Problem::of_fields(Code::BodyInvalid, vec![error]));
        }
    };
    let key = store::new_id::source_key();
    let new = NewSource {
        key,
        application: caller.application,
        id: asked.id.unwrap_or_else(|| PublicId::of_source(key)),
        name: asked.fields.name.flatten(),
        endpoint: (endpoint.key, endpoint.id),
        scheme: asked.scheme,
        event_id: asked.fields.event_id.flatten(),
        headers: asked.fields.headers.unwrap_or_default(),
        secret,
    };
    match state.store.create_source(&new).await? {
        SourceCreation::IdTaken => Err(Problem::new(Code::SourceIdTaken)),
        SourceCreation::EndpointMissing => Err(Problem::new(Code::EndpointNotFound)),
        SourceCreation::Created(source) => {
            let location = caller.location(&format!("/v1/sources/{}", source.id));
            let path = inbound_path(&state, caller.application, &source.id).await?;
            let secret = made.then(|| new.secret.expose().to_owned());
            let body = CreatedSource { source: source.into(), path, secret };
            Ok(HttpResponse::Created().insert_header((LOCATION, location)).json(body))
        }
    }
}

/// Where the sender is to send.
async fn inbound_path(
    state: &State,
    application: ApplicationKey,
    id: &PublicId,
) -> Result<String, Problem> {
    if application == DEFAULT_APPLICATION_KEY {
        return Ok(format!("/in/{id}"));
    }
    let page = Page { limit: 1, before: None };
    let named = state.store.list_applications(Some(application), page).await?;
    let named = named.first().ok_or_else(|| Problem::new(Code::ApplicationNotFound))?;
    Ok(format!("/in/{}/{id}", named.id))
}

impl CreateSource {
    fn parse(body: &[u8]) -> Result<Self, Problem> {
        let mut fields = Fields::of_body(body)?;
        let endpoint_id = fields.required("endpoint_id", PublicId::parse);
        let id = fields.optional("id", PublicId::parse);
        let given = SourceFields::take(&mut fields);
        if given.scheme.is_none() && !fields.is_refused("scheme") {
            fields.refuse("scheme", "field_missing", "is required");
        }
        let kind = given.scheme.as_ref().map(Scheme::kind);
        let secret = fields.value("secret", |value| match (value.as_str(), kind) {
            (Some(text), Some(kind)) => {
                SourceSecret::parse(kind, text).map_err(|error| Refusal::of(&error))
            }
            (Some(_), None) => Err(Refusal::new("scheme_malformed", "needs a `scheme`")),
            (None, _) => Err(Refusal::new("field_not_text", "must be a string")),
        });
        let scheme = given.scheme.clone();
        let made = endpoint_id.zip(scheme);
        fields.finish(made.map(|(endpoint_id, scheme)| Self {
            id,
            endpoint_id,
            scheme,
            secret,
            fields: given,
        }))
    }
}
